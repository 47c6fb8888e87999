# `make demo` runs the queue on this machine, `make test` proves it; both set up whatever is missing first.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
NPM ?= npm
# Tests that need no deployed stack run side by side.
WORKERS ?= auto
# Further arguments for pytest, for example: make test ARGS="-k preempt"
ARGS ?=

# Python may write its caches here: without, each process would compile all of ours that it imports, and each of pytest's
# would rewrite every test, which takes half a minute.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
# Compiled at once: Python caches what it imports only when it does, and the first of many processes that start side by
# side would each compile all of it.
UV := $(BIN)/uv pip install --quiet --compile-bytecode
SAM := SAM_CLI_TELEMETRY=0 .venv-sam/bin/sam
# It asks no server for guidelines.
CHECKOV := .venv-checkov/bin/checkov --framework cloudformation --compact --quiet --skip-download
STACK := .venv/.stamp .venv-ministack/.stamp .venv-sam/.stamp
DYNOXIDE := .local/dynoxide/.stamp
IAM_SIMULATE := .local/iam-simulate/.stamp
PYTHON310 := .local/python310/.stamp

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z][a-z0-9-]*:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- set-up

.PHONY: install
install: .venv/.stamp ## Make .venv, the environment to develop in

.PHONY: install-all
install-all: $(STACK) $(DYNOXIDE) $(IAM_SIMULATE) $(PYTHON310) .venv-sdk2/.stamp .venv-sdk3/.stamp .venv-torch/.stamp .venv-torch-newest/.stamp .venv-jax/.stamp ## Make every environment that demo and test use

.PHONY: install-demo
install-demo: $(STACK) .venv-sdk2/.stamp ## Make the environments that the demo uses

.PHONY: install-demo-elastic
install-demo-elastic: $(STACK) .venv-torch/.stamp ## Make the environments that the elastic demo uses

.PHONY: install-console
install-console: $(STACK) ## Make the environments that the example queue uses

.PHONY: install-sdk2
install-sdk2: .venv-sdk2/.stamp ## Make .venv-sdk2, SageMaker SDK 2 with Trainmaster beside it

.PHONY: install-sdk3
install-sdk3: .venv-sdk3/.stamp ## Make .venv-sdk3, SageMaker SDK 3 with Trainmaster beside it

.PHONY: install-airflow
install-airflow: .venv-airflow/.stamp ## Make .venv-airflow, Airflow with Trainmaster beside it

# Makes the environment $(1) and installs $(2) in it.
define environment
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@$(UV) --python $(1)/bin/python $(2)
	@touch $(1)/.stamp
endef

.venv/.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	    "Trainmaster needs Python 3.11 or newer: make PYTHON=python3.13 ...")'
	@echo "Setting up .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"
	$(call environment,.venv,--editable ".[dev]")

.venv-ministack/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-ministack, the stand-in for AWS"
	$(call environment,.venv-ministack,--group ministack)

.venv-sam/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-sam, which builds and deploys the template"
	$(call environment,.venv-sam,--group sam)

.venv-audit/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-audit"
	$(call environment,.venv-audit,--group audit)

.venv-checkov/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-checkov"
	$(call environment,.venv-checkov,--group checkov)

.venv-sdk2/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-sdk2, SageMaker SDK v2 with Trainmaster beside it"
	$(call environment,.venv-sdk2,--editable ".[sdk2]" --group sdk2-tests)

.venv-sdk3/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-sdk3, SageMaker SDK v3 with Trainmaster beside it"
	$(call environment,.venv-sdk3,--editable ".[sdk3]" --group sdk-tests)

# uv does not read pip's settings, which may name a folder with torch's build for CPUs. Without it Linux gets the one for
# CUDA: larger, but good as well; UV_TORCH_BACKEND=cpu avoids that.
WHEELS = $(or $(PIP_FIND_LINKS),$(shell $(PYTHON) -m pip config get global.find-links 2> /dev/null))

.venv-torch/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-torch, elastic torch with Trainmaster beside it"
	$(call environment,.venv-torch,$(addprefix --find-links ,$(WHEELS)) --editable . --group torch)

.venv-torch-newest/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-torch-newest, the same with the newest release"
	$(call environment,.venv-torch-newest,$(addprefix --find-links ,$(WHEELS)) --editable . --group torch-newest)

.venv-jax/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-jax, JAX with Trainmaster beside it"
	$(call environment,.venv-jax,--editable . --group jax)

.venv-integrations/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-integrations, tools of others with Trainmaster beside them"
	$(call environment,.venv-integrations,--editable . --group integrations)

.venv-airflow/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-airflow, Airflow with Trainmaster beside it"
	$(call environment,.venv-airflow,--editable . --group airflow)

.venv-zenml/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-zenml, ZenML with Trainmaster beside it"
	$(call environment,.venv-zenml,--editable . --group zenml)

# Programs that know nothing of Trainmaster, which `trainmaster exec` runs.
.venv-exec/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-exec, other programs that submit training jobs"
	$(call environment,.venv-exec,$(addprefix --find-links ,$(WHEELS)) --group exec)
	@command -v $(NPM) > /dev/null || { echo "npm is missing: install Node.js" >&2; exit 1; }
	$(NPM) install --prefix .venv-exec/node --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
	    "@aws-sdk/client-batch@^3.1130" "@aws-sdk/client-sagemaker@^3.1130"

# A DynamoDB engine checked against AWS: its binary is inside the npm package, which there is for Linux on x86_64 only.
$(DYNOXIDE):
	mkdir -p .local/dynoxide
ifeq ($(shell uname -sm),Linux x86_64)
	@echo "Setting up .local/dynoxide, a DynamoDB engine for the contract tests"
	@command -v $(NPM) > /dev/null || { echo "npm is missing: install Node.js" >&2; exit 1; }
	$(NPM) install --prefix .local/dynoxide --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
	    "@dynoxide/linux-x64@^1.2"
	chmod +x .local/dynoxide/node_modules/@dynoxide/linux-x64/dynoxide
	ln -sf node_modules/@dynoxide/linux-x64/dynoxide .local/dynoxide/dynoxide
else
	@echo "There is no Dynoxide for this machine: its tests are skipped, and make bench needs another"
endif
	touch $@

# Evaluates IAM policies offline, for the tests of the templates' policies. It runs as a program of its own and is no part
# of what is built: its license is the AGPL.
$(IAM_SIMULATE):
	mkdir -p .local/iam-simulate
	@echo "Setting up .local/iam-simulate, an evaluator of IAM policies for the tests"
	@command -v $(NPM) > /dev/null || { echo "npm is missing: install Node.js" >&2; exit 1; }
	$(NPM) install --prefix .local/iam-simulate --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
	    "@cloud-copilot/iam-simulate@0.1.173"
	touch $@

# The oldest Python that client, command line and worker support, as WebAssembly for Node.js, with the oldest releases of
# what they depend on.
$(PYTHON310): pyproject.toml | .venv/.stamp
	mkdir -p .local/python310
	@echo "Setting up .local/python310, in which the tests run client and command line on Python 3.10"
	@command -v $(NPM) > /dev/null || { echo "npm is missing: install Node.js" >&2; exit 1; }
	$(NPM) install --prefix .local/python310 --no-save --no-audit --no-fund --ignore-scripts --loglevel=error pyodide@0.22.1
	$(BIN)/uv pip install --quiet --target .local/python310/site --python-version 3.10 --only-binary :all: --resolution lowest-direct -r pyproject.toml
	touch $@

# A browser's tests: Playwright drives the Chromium of the system, with axe for accessibility; TypeScript checks the page's
# types. The page itself needs no Node.js, neither to install nor to run.
BROWSER := .venv-browser/.stamp .local/browser/.stamp

.venv-browser/.stamp: pyproject.toml | .venv/.stamp
	@echo "Setting up .venv-browser, which drives a browser"
	$(call environment,.venv-browser,--group browser)

.local/browser/.stamp:
	mkdir -p .local/browser
	@echo "Setting up .local/browser, which checks the console's page"
	@command -v $(NPM) > /dev/null || { echo "npm is missing: install Node.js" >&2; exit 1; }
	$(NPM) install --prefix .local/browser --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
	    axe-core@4.14.1 typescript@7.0.2
	touch $@

# ---------------------------------------------------------------- run

.PHONY: demo
demo: install-demo ## Run the article's four jobs through a queue deployed on this machine
	@$(BIN)/python -m trainmaster demo

.PHONY: console
console: install-console ## Open the console on an example queue that runs on this machine until Ctrl-C; ARGS="--no-browser"
	@$(BIN)/python -m trainmaster.local.example_queue $(ARGS)

.PHONY: demo-elastic
demo-elastic: install-demo-elastic ## Run an elastic job of real torch processes: it grows, makes room and grows back
	@$(BIN)/python -m trainmaster demo --elastic $(ARGS)

.PHONY: stack
stack: $(STACK) ## Keep the deployed stack running on this machine until Ctrl-C; ARGS="--hostile 1": SageMaker misbehaves
	@$(BIN)/python -m trainmaster.local.stack $(ARGS)

.PHONY: simulate
simulate: .venv/.stamp $(DYNOXIDE) ## Play seeded days of the whole system, and print what fails as tests: ARGS="--days 1000 --jobs 2", IMAGES=1 for days with image jobs
	$(BIN)/python -m $(if $(IMAGES),tests.images.simulation,tests.simulation) $(ARGS)

.PHONY: bench
bench: $(STACK) $(DYNOXIDE) ## Measure what a pass costs at 100, 10,000 and 1,000,000 waiting jobs
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-placement
bench-placement: .venv/.stamp ## Repeat the article's experiments with the placement policies
	$(BIN)/python -m benchmarks.placement $(ARGS)

.PHONY: bench-elastic
bench-elastic: .venv/.stamp ## Replay traces with elastic jobs, beside allocations after two papers
	$(BIN)/python -m benchmarks.elastic $(ARGS)

.PHONY: bench-images
bench-images: .venv/.stamp $(DYNOXIDE) ## Measure what image jobs on endpoints cost, and the tiles a second of a worker
	$(BIN)/python -m benchmarks.images $(ARGS)
	$(BIN)/python -m benchmarks.images.tiles $(if $(findstring --save,$(ARGS)),--save)

.PHONY: bench-console
bench-console: .venv/.stamp $(DYNOXIDE) .venv-browser/.stamp ## Measure the console in a browser, over 10 and 1,000 running jobs; needs chromium
	$(BIN)/python -m benchmarks.console $(ARGS)

.PHONY: bench-rendezvous
bench-rendezvous: .venv/.stamp .venv-torch/.stamp $(DYNOXIDE) ## Measure pauses of real torchrun, beside torch's own c10d
	$(BIN)/python -m benchmarks.rendezvous $(ARGS)

# ---------------------------------------------------------------- prove

.PHONY: test
test: install-all ## Run the tests
	@# The stack's tests mostly wait, as those of the SDKs do: side by side they take the time of one. All are one list, so
	@# that no suite waits for the longest; the lines of two are mixed, so that something is seen for ten minutes.
	$(MAKE) --jobs=3 --keep-going test-unit test-stack test-sdk2 test-sdk3 test-torch test-torch-newest test-jax

.PHONY: test-all
test-all: ## Run the tests and the longer proofs
	$(MAKE) test SLOW=1
	$(MAKE) test-integrations
	$(MAKE) test-airflow SLOW=1
	$(MAKE) test-zenml
	$(MAKE) test-browser
	$(MAKE) test-exec

MARKED = $(if $(SLOW),,-m "not slow")

.PHONY: test-unit
test-unit: .venv/.stamp $(DYNOXIDE) $(IAM_SIMULATE) $(PYTHON310) ## Run the tests that need no deployed stack
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(MARKED) --ignore=tests/e2e --ignore=tests/images/e2e --ignore=tests/torch --ignore=tests/jax --ignore=tests/integrations --ignore=tests/airflow --ignore=tests/zenml --ignore=tests/browser --ignore=tests/exec $(ARGS)

.PHONY: test-stack
test-stack: $(STACK) .venv-sdk2/.stamp .venv-sdk3/.stamp .venv-torch/.stamp ## Run the tests of the deployed stack
	@# They wait for stacks rather than work: two files at a time, each on a stack of its own.
	$(BIN)/python -m pytest -n 2 --dist loadfile $(MARKED) tests/e2e tests/images/e2e --ignore=tests/e2e/sdk2 --ignore=tests/e2e/sdk3 $(ARGS)

.PHONY: test-sdk2
test-sdk2: .venv-sdk2/.stamp ## Run the tests of the client beside SageMaker SDK v2
	.venv-sdk2/bin/python -m pytest $(MARKED) tests/e2e/sdk2 $(ARGS)

.PHONY: test-sdk3
test-sdk3: .venv-sdk3/.stamp ## Run the tests of the client beside SageMaker SDK v3
	.venv-sdk3/bin/python -m pytest $(MARKED) tests/e2e/sdk3 $(ARGS)

.PHONY: test-torch
test-torch: .venv-torch/.stamp $(DYNOXIDE) ## Run the tests of the rendezvous below elastic torch
	.venv-torch/bin/python -m pytest -n 2 --dist worksteal $(MARKED) tests/torch $(ARGS)

.PHONY: test-torch-newest
test-torch-newest: .venv-torch-newest/.stamp $(DYNOXIDE) ## Run the same tests below the newest release of torch
	.venv-torch-newest/bin/python -m pytest -n 2 --dist worksteal $(MARKED) tests/torch $(ARGS)

.PHONY: lose-first-ranks
lose-first-ranks: .venv-torch/.stamp $(DYNOXIDE) ## Lose the first rank of torch's agents a thousand times while ranks are assigned; ARGS="--losses 100 --at-once 2"
	.venv-torch/bin/python tests/torch/losses.py $(ARGS)

.PHONY: test-jax
test-jax: .venv-jax/.stamp $(DYNOXIDE) ## Run the tests of the rendezvous below JAX
	.venv-jax/bin/python -m pytest $(MARKED) tests/jax $(ARGS)

.PHONY: test-integrations
test-integrations: .venv-integrations/.stamp ## Run the tests with the tools of others
	.venv-integrations/bin/python -m pytest $(MARKED) tests/integrations $(ARGS)

.PHONY: test-airflow
test-airflow: .venv-airflow/.stamp ## Run the tests of the session factory in Airflow
	.venv-airflow/bin/python -m pytest $(MARKED) tests/airflow $(ARGS)

.PHONY: test-zenml
test-zenml: .venv-zenml/.stamp ## Run the tests of the step operator in ZenML
	.venv-zenml/bin/python -m pytest $(MARKED) tests/zenml $(ARGS)

.PHONY: test-browser
test-browser: $(STACK) $(BROWSER) ## Run the console's tests in a browser; needs Debian's chromium, or CHROMIUM=path
	.local/browser/node_modules/.bin/tsc --project tests/console/tsconfig.json
	.venv-browser/bin/python -m pytest --config-file=tests/browser/pytest.ini tests/browser $(ARGS)

.PHONY: test-exec
test-exec: .venv/.stamp .venv-exec/.stamp ## Run the AWS CLI, accelerate and a program in JavaScript behind `trainmaster exec`
	$(BIN)/python -m pytest tests/exec $(ARGS)

.PHONY: lint
lint: .venv/.stamp lint-prose ## Check style, types and prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: lint-prose
lint-prose: .venv/.stamp ## Check the words of docs, docstrings and comments
	$(BIN)/python scripts/prose.py

.PHONY: lint-template
lint-template: .venv/.stamp .venv-sam/.stamp .venv-checkov/.stamp ## Check both templates with SAM, cfn-lint and checkov
	$(SAM) validate --lint --region us-east-1
	$(SAM) validate --lint --region us-east-1 --template images/template.yaml
	.venv-sam/bin/cfn-lint template.yaml images/template.yaml
	@# Access logs need a role that is set for a whole account, so by default there are none. Other checks that do not
	@# apply are skipped in the templates, each with its reason.
	$(CHECKOV) --skip-check CKV_AWS_76 --file template.yaml images/template.yaml
	@# The hardened profile, rendered: checkov reads no conditions.
	$(BIN)/python scripts/render_template.py build/hardened
	$(CHECKOV) --file build/hardened/template.json build/hardened/images/template.json

PIP_AUDIT = .venv-audit/bin/pip-audit
LOCKS = $(wildcard src/locks/*.txt images/layer/locks/*.txt)

.PHONY: lock
lock: .venv/.stamp ## Write the locks of the Lambda bundles and layer: the newest versions allowed, with hashes
	PYTHONPATH=src $(BIN)/python scripts/lock.py

.PHONY: audit
audit: .venv-audit/.stamp ## Look for known vulnerabilities in the locked packages; needs the network
	@# --strict: a package that cannot be looked up is a failure, as when there is no network.
	@told=$$($(PIP_AUDIT) --strict --require-hashes --disable-pip --progress-spinner off $(addprefix -r ,$(LOCKS)) 2>&1) \
	    && echo "$$told" || { echo "$$told"; case "$$told" in \
	    *"Found "*) echo "make audit: these packages have known vulnerabilities" ;; \
	    *) echo "make audit: nothing was audited, because the advisories could not be read: it needs the JSON API of PyPI" ;; \
	    esac >&2; exit 1; }

.PHONY: reference
reference: .venv/.stamp ## Write all files that are generated from the code
	$(BIN)/python scripts/openapi.py
	$(BIN)/python scripts/client_types.py
	$(BIN)/python scripts/cli_reference.py
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/manifest_corpus.py

.PHONY: check
check: lint lint-template ## Run everything that must pass before a commit
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(MAKE) test

# ---------------------------------------------------------------- tidy

.PHONY: clean
clean: ## Remove every environment and everything built
	rm -rf .venv .venv-* .local .aws-sam images/.aws-sam build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
