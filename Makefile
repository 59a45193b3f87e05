# `make demo` and `make test` set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test test-slow test-cluster lint bench golden clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "orch needs Python 3.11 or newer: run make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# A small sweep on this machine's cores: about five minutes on two.
demo: $(READY)
	$(BIN)/orch sweep demo
	$(BIN)/orch claims --scale demo
	$(BIN)/orch report demo --output report.html
	@echo 'Open report.html. Next:'
	@echo '  $(BIN)/orch train --model bilinear --task state_machine --steps 1000   # one trial, here'
	@echo '  $(BIN)/orch plan main --scale laptop                                   # what a sweep would take'
	@echo '  $(BIN)/orch sweep main --where model=rotation,modulus=5                # and a part of it'

# Tests that start Ray have the machine to themselves; the others share it.
test: $(READY)
	$(BIN)/pytest --numprocesses 2 -m 'not ray'
	$(BIN)/pytest --durations 10 -m 'ray and not cluster and not slow'

# A driver killed ten times, and every way to fail: four minutes more.
test-slow: $(READY)
	$(BIN)/pytest -m slow

# Those that launch a cluster on hosts of this machine: four minutes more, as root.
test-cluster: $(READY)
	$(BIN)/pytest -m cluster

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/training_step.py
	$(BIN)/python benchmarks/mamba.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/query.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/packs.py
	$(BIN)/python benchmarks/scale.py

# Record the golden values anew, after a change of numerics that raised a revision.
golden: $(READY)
	$(BIN)/python tests/golden/record.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
