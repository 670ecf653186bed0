# Every target sets up what it needs by itself; `make` alone prints this list.
PYTHON ?= python3
VENV := .venv

OUT ?= build/functions
export OUT STEPS REGISTRY VERSION PUSH DIGEST IMAGE KNATIVE FIGURE

BIN := $(VENV)/bin
READY := $(VENV)/.ready
# `make run` and `make cluster` need less; they use what `make setup` installed if that is there.
LIGHT := $(if $(wildcard $(READY)),$(READY),$(VENV)/.ready-run)

.DEFAULT_GOAL := help
.PHONY: help setup run test browser check fmt manifests stage images release cluster cluster-down e2e docs record bench golden-update lock clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install the locked dependencies into .venv (every other target does it by itself)

# A dot for each package, on any terminal and in a log.
DOTS := { while read -r word rest; do case "$$word" in Collecting) printf .;; failed) exit 1;; esac; done; echo; }
PIP := pip install --disable-pip-version-check
define install
	@$(PYTHON) -m venv $(VENV)
	@{ $(BIN)/$(PIP) $(2) --require-hashes -r $(1) || echo failed; } | $(DOTS)
	@$(BIN)/$(PIP) --quiet --no-deps --no-build-isolation -e .
	@touch $@
endef

$(READY): requirements-dev.txt pyproject.toml
	@echo "Installing the locked dependencies into $(VENV), once; about a minute:"
	$(call install,requirements-dev.txt)

$(VENV)/.ready-run: requirements-run.txt pyproject.toml
	@echo "Installing what it needs into $(VENV), once; about half a minute:"
	$(call install,requirements-run.txt,--no-compile)

run: $(LIGHT) ## Watch two Jobs with and without gangs on an embedded cluster, with Python alone
	@$(BIN)/muster run

# Modules are handed out whole, so that a stack that a module starts is started once, and in the order of testpaths,
# which begins with those that take longest. There are more workers than processors, because some tests wait. Bytecode is
# kept whatever the environment says: else all workers and every process that a test starts compile the same five hundred
# modules.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest
test: $(READY) ## Run everything that needs Python only
	$(PYTEST) -n 3 --dist loadscope --no-loadscope-reorder

browser: $(READY) ## Test the page of `muster view` in headless Chromium (Debian: apt-get install chromium chromium-driver)
	$(PYTEST) -m browser tests/browser

check: $(READY) ## Lint, types, layers, budgets
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.budgets

fmt: $(READY) ## Format the code and mend what can be mended safely
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

manifests: $(READY) ## Write what kubectl builds of eventing/overlays to eventing/built, check it (needs Go 1.26)
	$(BIN)/python -m tests.manifests.built
	$(BIN)/pytest tests/manifests -m "real or not real"

stage: $(READY) ## Put each function together with what it imports into build/functions; yours too: STEPS=FOLDER
	@$(BIN)/python functions/stage.py "$$OUT" $$STEPS

images: $(READY) ## Build the image with podman, docker or buildah: REGISTRY=registry.example.com/team PUSH=1
	@$(BIN)/python -m release images --registry "$$REGISTRY" --version "$$VERSION" $(if $(PUSH),--push)

release: $(READY) ## Write wheel, manifests, chart and checksums: VERSION=0.1.0 IMAGE=REPOSITORY@sha256:...
	@$(BIN)/python -m release release --version "$$VERSION" --image "$$IMAGE" --registry "$$REGISTRY" --digest "$$DIGEST"

cluster: $(LIGHT) ## Start the real control plane from Go modules and leave it up (needs Go 1.26); with Knative: KNATIVE=1
	@$(BIN)/python -m tests.cluster up $(if $(KNATIVE),knative)

cluster-down: $(LIGHT) ## Stop what `make cluster` started
	@$(BIN)/python -m tests.cluster down

REAL := $(BIN)/pytest -m "real and not storm" --timeout 900 -o cache_dir=.pytest_cache/real tests/contract tests/docs tests/manifests tests/e2e
# Three workers for two cores, because a story waits about as often as it works.
e2e: $(READY) ## Run contract and stories on the real control plane (needs Go 1.26)
	$(BIN)/python -m tests.cluster build
	PYTHONDONTWRITEBYTECODE= $(REAL) -n 3 --dist loadfile --no-loadscope-reorder

SITE := build/site-tools
$(SITE)/.ready: requirements-docs.txt
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/$(PIP) --quiet --require-hashes -r $<
	@touch $@

docs: $(SITE)/.ready ## Build the pages as a site in build/site; broken links fail
	@$(SITE)/bin/python release/site.py build
	@$(SITE)/bin/zensical build --clean --strict --config-file build/zensical.toml

storm: $(READY) ## Kill, scale and update gangs of five kinds at random on the real control plane (needs Go 1.26)
	$(BIN)/pytest -m storm --timeout 900 -o cache_dir=.pytest_cache/real tests/e2e

record: $(READY) ## Record contract answers and event streams anew, show what changed (needs Go 1.26)
	$(BIN)/python -m tests.contract.record
	$(BIN)/python -m tests.contract.broker.record
	$(BIN)/python -m tests.replays.record
	@$(MAKE) --no-print-directory golden-update

bench: $(READY) ## Measure speed and write docs/speed.md (needs Go 1.26); one figure: FIGURE=cold-start
	@$(BIN)/python -m bench $$FIGURE

golden-update: $(READY) ## Write golden plans, explanations, counts and schemas anew; review the diff
	$(BIN)/python -m tests.replays.update
	$(BIN)/python -m tests.examples.golden
	$(BIN)/python -m tests.counts
	$(BIN)/python -m tests.schemas.policy
	$(BIN)/python -m tests.schemas.replies
	$(BIN)/pytest --quiet --muster-update
	@git --no-pager diff --stat

DEV := --extra knative --extra traces --extra dev
lock: ## Resolve the dependencies anew and lock them with hashes (needs uv)
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 $(DEV) \
	  --no-emit-index-url --custom-compile-command "make lock" pyproject.toml -o requirements-dev.txt
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --group pyproject.toml:image \
	  --no-emit-index-url --custom-compile-command "make lock" -o requirements.txt
	printf '%s\n' editables hatchling | uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	  -c requirements-dev.txt --no-emit-index-url --custom-compile-command "make lock" \
	  pyproject.toml - -o requirements-run.txt
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	  --no-emit-index-url --custom-compile-command "make lock" release/docs.in -o requirements-docs.txt

clean: ## Remove what was installed and cached here
	rm -rf build $(VENV) .cluster .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
