# Everything runs from a virtual environment in the tree, made on first use from pyproject.toml.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-thorough figures lint format protos deploy lock bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

install: $(STAMP) ## make the virtual environment (the other targets do it when it is missing or out of date)

$(STAMP): pyproject.toml
	@echo "==> setting up $(VENV) (the first time; offline from then on)"
	@$(PYTHON) -c 'import sys; sys.exit("python3 >= 3.11 is needed, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8' --upgrade 'pip>=25.1'
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --group dev --editable . \
		--config-settings compile=no || { \
		echo "==> uv cannot install, so pip does: slower, but with its own settings of indexes and proxies"; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable . \
			--config-settings compile=no; }
	@echo "==> compiling the searches: some 40 seconds of two cores"
	@$(BIN)/firmament compile
	@touch $@

demo: $(STAMP) ## schedule a mixed workload on a synthetic cluster (ARGS="--nodes 1000 --pods 10000")
	@$(BIN)/poseidon demo $(ARGS)

test: $(STAMP) ## run all tests, a worker a core
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup $(ARGS)

test-fast: $(STAMP) ## run the tests that take under a quarter of a second each
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup -m "not slow and not e2e" $(ARGS)

test-thorough: $(STAMP) ## run all tests with every seed, twelve times the examples, and all published figures
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n auto --dist loadgroup $(ARGS)

figures: $(STAMP) ## measure the published figures that follow from the seed, and write them into docs
	@$(BIN)/python -m tests.benchmarks.published_figures

lint: $(STAMP) ## format check, lint, types, import contracts, generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config .importlinter
	$(BIN)/python -m protos.generate --check
	$(BIN)/python -m deploy.generate --check

format: $(STAMP) ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

protos: $(STAMP) ## regenerate protos/gen from protos/*.proto
	$(BIN)/python -m protos.generate

deploy: $(STAMP) ## regenerate the kustomize files, the schema of the chart's values, docs/rbac.md and the other generated pages
	$(BIN)/python -m deploy.generate

lock: $(STAMP) ## renew the versions of the image, deploy/requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --extra dashboard pyproject.toml deploy/build-requirements.in -o deploy/requirements.lock

bench: $(STAMP) ## list the benchmark suites (run one: .venv/bin/poseidon-bench run SUITE)
	@$(BIN)/poseidon-bench list

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
