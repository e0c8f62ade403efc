# Everything a newcomer needs; CI runs the same. `make` alone lists it.

PYTHON ?= python3
PORT ?= 5000
N ?= 20
SEED ?= 1
ARGS ?=

# Environments hold what their lock files say, and see no package of the caller's.
unexport PYTHONPATH PYTHONHOME PYTHONUSERBASE
export PYTHONNOUSERSITE := 1
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup dev demo test chaos bench-client debian case-study screenshots lint docs ui clean-envs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## build the environments: the workflow's and the SGLang CPU engine's
	@$(PYTHON) envs/install.py workflow sglang-cpu

dev:
	@$(PYTHON) envs/install.py dev

demo: setup ## set up, then run the default campaign on the real SGLang CPU engine
	@.venv/bin/snakemake

test: setup dev lint debian ## set up, lint, and run all tests
	@if command -v chromium >/dev/null; then .venv/bin/python -m pytest; \
	  else .venv/bin/python -m pytest -m "not browser"; fi

# Pages are tested in a real browser and tracking on a real PostgreSQL, from Debian's packages,
# where those are there or may be installed.
debian:
	@for need in chromium:/usr/bin/chromium postgresql-15:/usr/lib/postgresql/15/bin; do \
	  name=$${need%%:*}; test -e "$${need#*:}" && continue; \
	  { test "$$(id -u)" = 0 && echo "installing $$name" && apt-get -qq update \
	    && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install $$name >/dev/null; } || \
	  echo "$$name is not there, so what needs it is not tested: apt-get install $$name"; \
	done

chaos: setup dev ## break campaigns at random, N runs from seed SEED (N=20)
	@PYTHONPATH=tests:workflow/scripts .venv/bin/python -m chaos --runs $(N) --seed $(SEED) --jobs 2

bench-client: setup ## compare load clients with a server whose times are known (ARGS=--shared-core)
	@PYTHONPATH=tests:workflow/scripts .venv/bin/python -m perf.client_accuracy $(ARGS)

lint: dev ## check style, types and the workflow
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/snakefmt --check Snakefile workflow/rules
	@.venv/bin/mypy
	@.venv/bin/snakemake --lint

docs: dev ## make the pages that are made from models and schemas anew
	@PYTHONPATH=workflow/scripts .venv/bin/python -m sgmatrix.plan.reference
	@PYTHONPATH=workflow/scripts .venv/bin/python -m sgmatrix.load.foreign.page
	@PYTHONPATH=workflow/scripts .venv/bin/python -m sgmatrix.core.schema_page

case-study: dev ## figures and tables of docs/case-study-h200.md anew, of the data beside it
	@PYTHONPATH=workflow/scripts .venv/bin/python -m sgmatrix.present.case_study draw docs/case-study-h200

screenshots: dev debian ## the pictures of README and docs, of results/demo
	@PYTHONPATH=tests .venv/bin/python -m screenshots

ui: ## open MLflow's pages on results/mlflow.db (PORT=5000)
	@test -f results/mlflow.db || { echo "results/mlflow.db is not there yet: run make demo or snakemake first"; exit 1; }
	@$(PYTHON) envs/install.py workflow
	@MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false \
	  .venv/bin/mlflow ui --backend-store-uri "sqlite:///$(CURDIR)/results/mlflow.db" \
	  --host 127.0.0.1 --port $(PORT)

clean-envs: ## remove the environments; results stay
	@rm -rf .venv .engines
