# Builds the layer of the functions that read images, for the platform whose Makefile in `platforms/` includes this one.
# pip downloads wheels for that platform, whatever machine builds. locked_packages.py is a link, which SAM follows.

# A folder with an earlier build, to which the layer then only points. It is for the local stack, each process of which
# would unpack 170 MB, and does not work in AWS.
BUILT ?=

SITE = $(ARTIFACTS_DIR)/python/lib/python$(PYTHON_VERSION)/site-packages

build-%:
ifdef BUILT
	mkdir -p "$(SITE)"
	echo "$(BUILT)/python" > "$(SITE)/imaging.pth"
else
	python3 locked_packages.py $* --python $(PYTHON_VERSION) --machine $(MACHINE) --locks locks --into "$(ARTIFACTS_DIR)"
endif
