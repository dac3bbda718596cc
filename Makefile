# `make` lists the commands. Everything happens in $(VENV); nothing outside the checkout is touched but the user's data folder.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
TORCH_VERSION ?= 2.13.0
NODE_MODULES := dashboard/node_modules
MODULE_TESTS := tests/dashboard/modules
SCRIPTS := dashboard/src/noisescale_dashboard/assets/modules dashboard/src/noisescale_dashboard/assets/boot dashboard/eslint.config.js $(MODULE_TESTS)
DOCUMENTATION := server/src/noisescale_server/documentation
SOURCES := client lab importers server dashboard migrations tests benchmarks examples docs release

# Tests start a hundred processes of ours: without bytecode on disk each compiles all of it again, a second or two.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup torch demo demo-data up migrate check quick test test-fast test-full test-gpu torture mutants fuzz test-citus bench docs lock dist audit clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "noisescale needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Exactly the files that the lock names, by their hashes: nothing is looked up, and nothing is built. `make lock` writes them.
LOCKED := $(PIP_INSTALL) --require-hashes --no-deps --only-binary :all: --requirement

# The stamp is renewed when what is installed changes. Our own five, last: what builds them is locked, too.
$(VENV)/installed: $(BIN)/python pyproject.toml client/pyproject.toml lab/pyproject.toml importers/pyproject.toml server/pyproject.toml dashboard/pyproject.toml client/src/noisescale/version.py locks/development.txt
	$(LOCKED) locks/development.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable client --editable lab --editable importers --editable server --editable dashboard
	@touch $@

setup: $(VENV)/integrations $(NODE_MODULES)/installed  ## virtual environment with everything that the tests want, PyTorch included

# What checks the browser's modules: exactly what the lock names, by hashes. Nothing of it is served or shipped.
$(NODE_MODULES)/installed: dashboard/package.json dashboard/package-lock.json
	@node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major * 100 + +minor < 2019 ? 1 : 0)' 2>/dev/null \
		|| { echo "The browser's modules are checked by node 20.19 or newer with npm: install it and run again."; exit 1; }
	cd dashboard && npm ci --silent --no-audit --no-fund
	@touch $@

# What the tests of callbacks and mirrors want: the frameworks and trackers themselves. After torch, which they would
# replace; `make demo` and `make up` do without.
$(VENV)/integrations: locks/integrations.txt requirements-torch.txt requirements-mutants.txt | torch
	$(LOCKED) locks/integrations.txt
	$(PIP_INSTALL) --requirement requirements-torch.txt --requirement requirements-mutants.txt
	@touch $@

torch: $(VENV)/installed
	@$(BIN)/python -c 'import torch' 2>/dev/null || { \
		echo "PyTorch is missing: installing torch==$(TORCH_VERSION) from the configured package index."; \
		echo "A CPU build is about 200 MB, the CUDA build of PyPI several GB; README.md says how to choose."; \
		$(PIP_INSTALL) torch==$(TORCH_VERSION); }

demo: torch  ## serve, and train four real runs that log into it; Ctrl-C ends it
	@$(BIN)/python examples/run_demo.py

# About ten minutes of training on two cores; what it writes is kept in the repository.
demo-data: setup  ## train anew what `noisescale demo --data` loads
	$(BIN)/python examples/record_demo_data.py

up: $(VENV)/installed  ## serve API and dashboard on an embedded Postgres
	@$(BIN)/noisescale up

migrate: $(VENV)/installed  ## bring the database to the newest schema
	@$(BIN)/noisescale migrate

check: $(VENV)/installed $(NODE_MODULES)/installed  ## formatting, lint, types, import directions, docstrings, pages of figures; the browser's modules by node
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/ruff check --quiet $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/tables.py --check
	$(BIN)/ruff check --quiet --preview --select DOC102,DOC202,DOC403 client/src lab/src importers/src server/src dashboard/src
	$(NODE_MODULES)/.bin/eslint --config dashboard/eslint.config.js $(SCRIPTS)
	$(NODE_MODULES)/.bin/prettier --config dashboard/.prettierrc.json --check --log-level warn $(SCRIPTS)
	@node --test --test-reporter dot $(MODULE_TESTS)/*.test.mjs || { node --test --test-reporter spec $(MODULE_TESTS)/*.test.mjs; exit 1; }

# The quick tests in parts, the longest first. Each is a pytest of its own that reads only its own files, where each of
# three workers read all of them, half a minute in a fresh checkout; what imports the same is in one part, since the
# server takes two seconds to import, torch and Lightning longer. Tests wait for processes and pages, so that five
# parts at once fill two cores; the part `others` is whatever no other names, so that no test is forgotten.
JOBS ?= 5
QUICK := -m "not slow and not gpu" --quiet
PARTS := api browser formulas server others capture access
PART_browser := tests/dashboard tests/e2e
PART_access := tests/server/access
PART_capture := tests/client/capture tests/client/kernels
PART_api := tests/server/api tests/server/analysis
PART_server := tests/server
PART_formulas := tests/core tests/lab tests/client/run tests/client/integrations
PART_others := tests
WITHOUT_server := $(PART_access) $(PART_api)
WITHOUT_others := $(foreach part,$(filter-out others,$(PARTS)),$(PART_$(part)))
QUICK_PARTS := $(addprefix quick-,$(PARTS))
# the make that macOS brings cannot print part by part
IN_PARTS = $(MAKE) --no-print-directory --keep-going --jobs $(JOBS) $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Several processes test at once: torch's and numpy's threads would only get into each other's way.
quick $(QUICK_PARTS) test test-fast test-full slow-torture slow-computing slow-others slow-alone: export OMP_NUM_THREADS = 1

.PHONY: $(QUICK_PARTS)
$(QUICK_PARTS): quick-%: setup
	$(BIN)/pytest $(QUICK) $(PART_$*) $(addprefix --ignore ,$(WITHOUT_$*))

quick: setup
	@$(IN_PARTS) $(QUICK_PARTS)

test: setup  ## check, and what a change can break, browser tests included
	@$(IN_PARTS) check $(QUICK_PARTS)

test-fast: setup  ## the inner loop: no browser, no database, no processes, nothing that takes a third of a second
	$(BIN)/pytest -m "not slow and not gpu and not browser and not processes and not thorough" --numprocesses 2 --dist loadfile

# Two at once fill two cores: with three, servers and pages are now and then slower than their tests wait. So what mostly
# computes comes first, beside the tortures, which mostly wait for what they have killed; then servers and pages; then by
# themselves the few that hold answers to a clock.
SLOW := -m "slow and not alone" --durations 25
TWO_AT_ONCE := --numprocesses 2 --dist loadfile --no-loadscope-reorder
COMPUTING := tests/benchmarks tests/client tests/core tests/lab tests/server/analysis

.PHONY: slow-torture slow-computing slow-others slow-alone
slow-torture: setup
	$(BIN)/pytest $(SLOW) tests/torture

slow-computing: setup
	$(BIN)/pytest $(SLOW) $(TWO_AT_ONCE) $(COMPUTING)

slow-others: setup
	$(BIN)/pytest $(SLOW) $(TWO_AT_ONCE) tests $(addprefix --ignore ,tests/torture $(COMPUTING))

slow-alone: setup
	$(BIN)/pytest -m "slow and alone"

# One part's failure hides none of another's.
test-full: setup  ## long statistics, faults and the smoke form of every benchmark as well
	@failed=0; \
	$(MAKE) --no-print-directory --keep-going --jobs 2 slow-computing slow-torture || failed=1; \
	$(MAKE) --no-print-directory slow-others || failed=1; \
	$(MAKE) --no-print-directory slow-alone || failed=1; \
	exit $$failed

test-gpu: setup  ## what needs a CUDA device
	$(BIN)/pytest -m gpu

# Builds Citus beside a copy of the PostgreSQL that PG_CONFIG names, once, in a temporary folder; CITUS_SOURCE is a git
# address or a folder with its history. Left out is what asks for the embedded Postgres itself.
CITUS_TESTS := tests/server/storage tests/server/ingestion tests/server/series tests/server/api tests/server/alerts tests/server/cost \
	tests/server/retention tests/server/access/test_sharing.py
OF_ONE_POSTGRES := --ignore tests/server/storage/test_migrations.py --ignore tests/server/storage/test_plans.py \
	--ignore tests/server/ingestion/test_postgres_killed.py --ignore tests/server/ingestion/test_frozen_postgres.py --ignore tests/server/ingestion/test_upgrade_under_a_job.py \
	--ignore tests/server/ingestion/test_restore_under_a_job.py \
	--deselect tests/server/ingestion/test_backup.py::test_the_embedded_database_is_kept_while_it_runs

test-citus: setup  ## storage, ingestion, series and API on a Citus built from source, with faults; FAULTS=whole, FIGURES=whole
	@folder=$$($(BIN)/python tests/support/citus_build.py) || exit 1; export NOISESCALE_CITUS_BIN=$$folder; \
		NOISESCALE_TEST_DATABASE=citus $(BIN)/pytest -m "not slow and not gpu" $(OF_ONE_POSTGRES) $(CITUS_TESTS) && \
		$(BIN)/python benchmarks/citus_faults.py $(if $(filter whole,$(FAULTS)),,--smoke) && \
		$(BIN)/python benchmarks/citus_beside_one.py $(if $(filter whole,$(FIGURES)),,--smoke)

bench: setup  ## every benchmark; results in benchmarks/results, fresh ones in README
	@for file in benchmarks/benchmark_*.py benchmarks/*/benchmark_*.py; do $(BIN)/python $$file || exit 1; done
	$(BIN)/python benchmarks/tables.py

torture: setup  ## three thousand faults: nothing lost unsaid, nothing doubled, each planted bug caught; an hour
	$(BIN)/python benchmarks/torture.py

# cosmic-ray and not mutmut, which mutates inside functions only: the pyramid is SQL in constants of modules.
mutants: setup  ## a hundred small bugs drawn at random: which of them the quick tests see; half an hour
	$(BIN)/python benchmarks/mutants.py $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/installed  ## 20,000 requests that fit the OpenAPI or do not: no 5xx, no answer beside the description
	$(BIN)/python benchmarks/fuzz_api.py

docs: $(VENV)/installed  ## build the documentation, which `noisescale up` then serves under /docs/; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder dirhtml --doctree-dir docs/_build docs $(DOCUMENTATION)

# The versions stay as they are where they still fit; `make lock UPGRADE=--upgrade` takes the newest.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-sources --no-build --generate-hashes \
	--no-annotate --custom-compile-command "make lock" --overrides locks/not-locked.txt
DISTRIBUTIONS := client/pyproject.toml server/pyproject.toml dashboard/pyproject.toml

lock: $(VENV)/installed  ## write the locks anew: every version and the hashes of its files, from the configured package index
	$(COMPILE) $(UPGRADE) $(DISTRIBUTIONS) lab/pyproject.toml importers/pyproject.toml requirements-dev.txt requirements-integrations.txt \
		--output-file locks/integrations.txt
	$(COMPILE) --constraints locks/integrations.txt $(DISTRIBUTIONS) lab/pyproject.toml importers/pyproject.toml requirements-dev.txt \
		--output-file locks/development.txt
	$(COMPILE) --constraints locks/integrations.txt $(DISTRIBUTIONS) requirements-image.txt --output-file locks/image.txt

# Files of one commit are the same bytes wherever they are built: the lock names what builds them, git the time in them.
dist: $(VENV)/installed  ## wheels and sdists in dist/, tried in an empty environment, with SBOM and hashes; FROM=commit upgrades its data
	$(BIN)/python release/dist.py $(if $(FROM),--upgrade-from $(FROM))

audit: $(VENV)/installed  ## known holes in what is installed, by pip-audit; asks a public database
	$(BIN)/pip-audit --requirement locks/integrations.txt --no-deps --disable-pip --progress-spinner off

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(NODE_MODULES) .mypy_cache .ruff_cache .pytest_cache .hypothesis
