# `make` lists the targets. Each does all set-up it needs, and says so while it does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -type f) CMakeLists.txt
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# Two workers of one thread each: small networks gain nothing from more, and results do not depend on it.
# tests/groups.py says what stays together, and what comes first.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint types stubs docs results wheel clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(VENV)/.installed ## install everything into .venv: some minutes once, then only what changed

demo: setup ## train, pack, verify, time and report on real digits, offline: half a minute after set-up
	$(BIN)/ebnet demo

test: lint types ## the checks and all quick tests: at most 6 minutes on two cores
	$(PYTEST) -m "not slow"

test-all: lint types ## every test and every documented command: at most 25 minutes on two cores
	$(PYTEST)

lint: setup ## style: ruff
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .

types: setup ## types: mypy
	$(BIN)/mypy

stubs: setup ## the types of the native module, after a change of its bindings
	$(BIN)/python native/python/stubs.py

docs: setup ## the documentation as a site, in site/
	$(BIN)/mkdocs build --strict

results: setup ## what is made from the records in results/: docs/results.md, the shipped verdicts, README's line
	$(BIN)/python -m ebnet.reproduce.shipped
	$(BIN)/ebnet results results -o docs/results.md

wheel: setup ## a source archive and a wheel for this machine, in dist/
	$(BIN)/python -m build

clean: ## remove the environment, what was built and the tools' caches
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache

# An environment that exists is kept. When the packages asked for have changed, pip is asked for all of them; when only
# the native core has, it is compiled and installed alone.
ASKED := pyproject.toml constraints.txt
ALL = torch and the other packages of pyproject.toml, and the native core: once 3 to 10 minutes, 600 MB to fetch
CORE = the native core alone: a minute at most
SHOW = sed -unE '/\.metadata/d; s/^ *((Downloading|Using cached|Building|Installing|Successfully).{0,90}).*/  \1/p'

$(BIN)/python:
	@echo "Set-up, 1 of 2: an empty Python environment in $(VENV), some seconds."
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(ASKED) $(NATIVE) | $(BIN)/python
	@echo "Set-up, 2 of 2: $(if $(filter $(ASKED),$?),$(ALL),$(CORE))."
	$(BIN)/pip install $(if $(filter $(ASKED),$?),-c constraints.txt -e ".[dev]" | $(SHOW),-q --no-deps -e .)
	@touch $@
