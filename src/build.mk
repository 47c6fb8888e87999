# Builds the code of a Lambda function, for the platform whose Makefile in `platforms/` includes this one.
PYTHON ?= python3

build-%:
	@$(PYTHON) build_bundle.py $* --python $(PYTHON_VERSION) --machine $(MACHINE) --into "$(ARTIFACTS_DIR)"
