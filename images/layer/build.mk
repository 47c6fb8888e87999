# Builds the layer of the functions that read images, for the platform whose Makefile in `platforms/` includes this one.
# pip downloads wheels for that platform, whatever machine builds.

# A folder with an earlier build, to which the layer then only points. It is for the local stack, each process of which
# would unpack 170 MB, and does not work in AWS.
BUILT ?=

SITE = $(ARTIFACTS_DIR)/python/lib/python$(PYTHON_VERSION)/site-packages

build-%:
ifdef BUILT
	mkdir -p "$(SITE)"
	echo "$(BUILT)/python" > "$(SITE)/imaging.pth"
else
	python3 -m pip install --quiet --disable-pip-version-check --requirement requirements.txt \
	  --target "$(ARTIFACTS_DIR)/python" --only-binary=:all: --implementation cp --python-version $(PYTHON_VERSION) \
	  --platform manylinux_2_28_$(MACHINE) --platform manylinux2014_$(MACHINE)
	find "$(ARTIFACTS_DIR)" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
endif
