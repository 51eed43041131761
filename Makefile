# Two commands matter: `make demo` and `make test`. Both do all set-up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -type f) CMakeLists.txt

.PHONY: demo test lint types docs setup clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e ".[dev]"
	touch $@

demo: setup
	$(BIN)/ebnet demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# Two workers of one thread each: small networks gain nothing from more, and results do not depend on it.
test: lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile

docs: setup
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build site .pytest_cache .mypy_cache .ruff_cache
