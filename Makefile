# Floodmark. Two commands set up everything: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
WORKERS ?= auto
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo run test check lint types contracts translations documentation screenshots benchmarks clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt packaging/system_packages.sh
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Floodmark needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Use: make PYTHON=python3.12 ..."; exit 2; }
	@sh packaging/system_packages.sh window
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## Open the window with a running training (ARGS="leak --theme dark" passes arguments on)
	$(BIN)/floodmark demo $(ARGS)

run: $(STAMP) ## Open the window
	$(BIN)/floodmark $(ARGS)

test: $(STAMP) check ## Lint, types, import contracts, translations, documentation and all tests
	@sh packaging/system_packages.sh tests
	@sh packaging/prometheus.sh
	@sh packaging/witnesses.sh $(BIN)/python
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist worksteal $(ARGS)

check: lint types contracts ## Only lint, types and import contracts

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports --no-cache

translations: $(STAMP) ## Bring the translation files up to date with the sources
	$(BIN)/python packaging/translations.py

documentation: $(STAMP) ## Bring the tables of the user guide up to date with the code
	QT_QPA_PLATFORM=offscreen $(BIN)/python packaging/documentation.py

screenshots: $(STAMP) ## Take the screenshots of the README
	$(BIN)/python packaging/screenshots.py

benchmarks: $(STAMP) ## Print the tables of the budgets (some minutes)
	@for script in benchmarks/*.py; do echo "== $$script"; QT_QPA_PLATFORM=offscreen $(BIN)/python $$script || exit 1; done

clean: ## Remove the environment and all caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
