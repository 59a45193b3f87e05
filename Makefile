# `make demo` and `make test` set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGES := .venv-packages
# Tests that kill processes and wait for others can fail on a machine that is busy: what failed is run once more, alone.
AGAIN = $(BIN)/pytest --last-failed --last-failed-no-failures none -m
WITH_RAY = ray and not cluster and not slow and not long
WITHOUT_RAY = not ray and not gpu and not cluster and not slow and not long

.PHONY: setup demo quick lint test test-thorough coverage test-gpu test-slow test-long test-exports test-cluster test-packages chaos docs tables bench golden clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "orch needs Python 3.11 or newer: run make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# A small sweep on this machine's cores: under a minute on two.
demo: $(READY)
	$(BIN)/orch sweep demo
	$(BIN)/orch claims --scale demo
	$(BIN)/orch report demo --output report.html
	@echo 'Open report.html. Next:'
	@echo '  $(BIN)/orch train --model bilinear --task state_machine --steps 1000   # one trial, here'
	@echo '  $(BIN)/orch plan main --scale laptop                                   # what a sweep would take'
	@echo '  $(BIN)/orch sweep main --where model=rotation,modulus=5                # and a part of it'

# While you work: the linters, and every test that is neither slow nor in need of Ray. About four minutes on two cores.
quick: lint
	$(BIN)/pytest --quiet --numprocesses 2 -m '$(WITHOUT_RAY) and not thorough'

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Before a merge. Tests that start Ray run two files at a time, each with a Ray of its own.
test: $(READY)
	$(BIN)/pytest --numprocesses 2 -m '$(WITHOUT_RAY) and not thorough' || $(AGAIN) '$(WITHOUT_RAY) and not thorough'
	$(BIN)/pytest --numprocesses 2 --dist loadfile --durations 10 -m '$(WITH_RAY)' || $(AGAIN) '$(WITH_RAY)'

# Tests without Ray that take several seconds each: figures in print, packs bit for bit, each crash point of the store.
test-thorough: $(READY)
	$(BIN)/pytest --numprocesses 2 --durations 10 -m '$(WITHOUT_RAY) and thorough' || $(AGAIN) '$(WITHOUT_RAY) and thorough'

# The lines and branches that the tests without Ray leave out, file by file, and the share that they do not.
coverage: $(READY)
	$(BIN)/pytest --numprocesses 2 -m '$(WITHOUT_RAY)' --cov --cov-report=
	$(BIN)/coverage report --skip-covered --show-missing

# The code for GPUs, as far as a CPU can run it: fake tensors, kernels in Triton's interpreter and compiled for an A100.
# What `orch doctor` finds on healthy and sick devices is among them. Seven minutes more.
test-gpu: $(READY)
	$(BIN)/pytest --numprocesses 2 -m gpu

# A driver that is killed ten times, every way in which a trial can fail, the live page beside a sweep: twelve minutes.
test-slow: $(READY)
	$(BIN)/pytest -m slow || $(AGAIN) slow

# Thousands of flipped bits and of hostile inputs, and signals at random moments: half an hour, estimated.
test-long: $(READY)
	$(BIN)/pytest -m long

# Exports to MLflow, Weights & Biases (offline) and Hugging Face, with the real libraries: half a gigabyte of packages.
test-exports: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,export]'
	$(BIN)/pytest -m slow tests/analysis/test_exports.py

# Clusters of several hosts, simulated on this machine, and a Slurm of one node: eight minutes, as root.
test-cluster: $(READY)
	$(BIN)/pytest -m cluster || $(AGAIN) cluster

# The tests of models and training with the packages that cluster/setup.sh installs, torch with CUDA among them: eight
# gigabytes and ten minutes, in an environment of its own. Mamba's CUDA wheels come from GitHub; nothing tests them here.
test-packages:
	test -x $(PACKAGES)/bin/python || $(PYTHON) -m venv $(PACKAGES)
	grep -v '^torch=' constraints.txt > $(PACKAGES)/constraints.txt
	$(PACKAGES)/bin/pip install --quiet --constraint $(PACKAGES)/constraints.txt --editable '.[dev]' einops \
	  $$(grep -o 'torch==[0-9.]*' cluster/setup.sh)
	$(PACKAGES)/bin/pip install --quiet --no-deps $$(grep -o 'https://.*\.whl' cluster/setup.sh) \
	  || echo "going on without Mamba's CUDA wheels"
	$(PACKAGES)/bin/pytest --quiet tests/models tests/training tests/golden

# The documentation as a site in build/site; every warning is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo 'Open build/site/index.html.'

# Ten rounds of chaos from a seed: processes, disks, networks and clocks fail, and every trial still has its one row.
# A failed round prints the command that runs it again. As root, so that disks can fill up; four minutes.
SEED ?= 11
ROUNDS ?= 10
chaos: $(READY)
	$(BIN)/python -m tests.chaos --seed $(SEED) --rounds $(ROUNDS)

# The tables in the documentation that commands print, from the results that ship.
tables: $(READY)
	$(BIN)/python docs/generated.py

bench: $(READY)
	$(BIN)/python benchmarks/training_step.py
	$(BIN)/python benchmarks/mamba.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/query.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/packs.py
	$(BIN)/python benchmarks/checkpoints.py
	$(BIN)/python benchmarks/scale.py

# Record new golden values, after a change of numerics that raised a revision.
golden: $(READY)
	$(BIN)/python tests/golden/record.py

clean:
	rm -rf $(VENV) $(PACKAGES) build dist *.egg-info src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .coverage .coverage.*
