# `make setup` once, then `make check` before every commit: it runs all that CI runs.
# The tools come from .venv where there is one, else from the PATH; or say BIN=/some/venv/bin/

BIN ?= $(if $(wildcard .venv/bin/python),.venv/bin/,)
ARGS ?= -n auto --dist loadgroup
BENCH ?=

.PHONY: setup check lint types test fmt bench clean

setup:
	.ci/setup

check: lint types test

lint:
	$(BIN)ruff check .
	$(BIN)ruff format --check .

types:
	$(BIN)mypy --strict

test:
	$(BIN)python -m pytest -q $(ARGS)

fmt:
	$(BIN)ruff check --fix .
	$(BIN)ruff format .

bench:
	$(BIN)python -m benchmarks $(BENCH)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
