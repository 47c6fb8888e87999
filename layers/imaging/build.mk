# Builds the layer ImagingLayer, for the platform whose Makefile in `platforms/` includes this one. Wheels are taken for
# the functions' own platform, whatever machine builds.

# A folder in which this has been built before: the layer only leads there. For the local stack, whose processes would
# unpack 170 MB each; of no use in AWS.
BUILT ?=

SITE = $(ARTIFACTS_DIR)/python/lib/python$(PYTHON_VERSION)/site-packages

build-ImagingLayer:
ifdef BUILT
	mkdir -p "$(SITE)"
	echo "$(BUILT)/python" > "$(SITE)/imaging.pth"
else
	python3 -m pip install --quiet --disable-pip-version-check --requirement requirements.txt \
	  --target "$(ARTIFACTS_DIR)/python" --only-binary=:all: --implementation cp --python-version $(PYTHON_VERSION) \
	  --platform manylinux_2_28_$(MACHINE) --platform manylinux2014_$(MACHINE)
	find "$(ARTIFACTS_DIR)" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
endif
