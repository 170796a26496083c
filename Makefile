# `make` alone lists what there is. Every target sets up what it needs first; that costs a moment when it is there.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
ARGS ?=
# Compiled modules are kept: the workers of the tests and the processes they start would compile all of them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## Make .venv, install Java and Chromium where root
	@scripts/setup.sh

.PHONY: demo
demo: ## Run the demo (ARGS="--for 120 --json" …)
	@scripts/setup.sh python java
	@.venv/bin/lagwise demo $(ARGS)

.PHONY: test
test: ## Run the whole test suite
	@scripts/setup.sh
	@$(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not long" $(ARGS)

.PHONY: test-fast
test-fast: ## Run the tests that take a minute together: no JVM, broker, browser or process, no thorough proofs
	@scripts/setup.sh python
	@$(PYTHON) -m pytest -n auto -m "not (spark or broker or browser or e2e or process or thorough or long)" $(ARGS)

.PHONY: test-long
test-long: ## Run the heavy proofs that CI leaves out
	@scripts/setup.sh
	@$(PYTHON) -m pytest -m long $(ARGS)

.PHONY: check
check: ## Check style, types, import rules, and that docs/reference is current
	@scripts/setup.sh python
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@$(PYTHON) -m pytest -q tests/architecture
	@$(PYTHON) scripts/reference.py --check

.PHONY: docs
docs: ## Rewrite docs/reference from the code
	@scripts/setup.sh python
	@$(PYTHON) scripts/reference.py

.PHONY: site
site: ## Build the docs as a site with search, into site
	@scripts/setup.sh python
	@$(PYTHON) scripts/site.py site

.PHONY: pictures
pictures: ## Take the pictures of README and docs anew (a quarter of an hour)
	@scripts/setup.sh
	@$(PYTHON) -m tests.dashboard.pictures $(ARGS)

.PHONY: bench
bench: ## Measure what the README promises
	@scripts/setup.sh python java
	@$(PYTHON) -m benchmarks $(ARGS)

.PHONY: packages
packages: ## Build wheel and source archive into dist
	@scripts/setup.sh python
	@$(PYTHON) -m hatchling build

.PHONY: lock
lock: ## Pin and hash the packages of the container image anew (needs uv)
	@uv pip compile -q pyproject.toml --extra all --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
		--generate-hashes --no-header --no-emit-index-url -o deploy/container/requirements.txt
	@$(PYTHON) scripts/bill_of_materials.py --page

.PHONY: sbom
sbom: ## Write the bill of materials into dist (CycloneDX)
	@scripts/setup.sh python
	@$(PYTHON) scripts/bill_of_materials.py dist/lagwise.cdx.json

.PHONY: manifests
manifests: ## Render deploy/kubernetes from the Helm chart anew (needs helm)
	@scripts/setup.sh python
	@$(PYTHON) scripts/manifests.py

.PHONY: clean
clean: ## Remove .venv and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
