# `make train` and `make test` set up whatever is missing and then do their job; see CONTRIBUTING.md.

VENV := .venv
PYTHON := $(VENV)/bin/python
ARGS ?=

# A machine on which nvidia-smi answers gets TensorFlow's GPU build; `make LOCK=... setup` overrides.
ifndef LOCK
LOCK := $(if $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes),requirements-gpu.lock,requirements.lock)
endif

# TensorFlow looks for the CUDA libraries of the nvidia-* wheels on the loader's path only.
ifeq ($(LOCK),requirements-gpu.lock)
CUDA := LD_LIBRARY_PATH="$$(printf '%s:' $(CURDIR)/$(VENV)/lib/python3.10/site-packages/nvidia/*/lib)$$LD_LIBRARY_PATH"
endif
RUN := $(CUDA) $(PYTHON)
GIVING_WAY := nice -n 10 env $(RUN)

PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet install --no-deps --no-compile

.PHONY: help setup setup-gcp setup-control setup-wandb setup-suites train test test-agents test-others test-runs test-fast test-cloud lint format lock build-files bazel clean
.DEFAULT_GOAL := help

help:
	@echo "make train [ARGS=...]  set up, then train R2D2 on Atari Pong in runs/pong; ARGS reach launch.train"
	@echo "make test              set up, then lint, type checks and every test"
	@echo "make test-fast         the tests that take seconds"
	@echo "make test-runs         the tests that start whole runs; test-agents and test-others: the rest"
	@echo "make test-cloud        whole runs on hosts of their own, on a Google Cloud that is a fake, in storms"
	@echo "make lint | format     check or fix the style"
	@echo "make bazel             bazel build //... and the fast tests under bazel"
	@echo "make build-files       write the BUILD files anew from the imports"
	@echo "make lock              resolve the lock files anew (LOCK_ARGS=--upgrade moves the pins)"
	@echo "make setup | clean     make or remove the environment .venv"
	@echo "make setup-gcp         add to it what launching on Google Cloud takes"
	@echo "make setup-control     add to it the DeepMind Control Suite: docs/control.md"
	@echo "make setup-wandb       add to it Weights & Biases: docs/tools.md"
	@echo "make setup-suites      add to it MiniGrid, BabyAI and popgym: docs/environments.md"

setup: $(VENV)/.installed

setup-gcp: setup $(VENV)/.gcp

setup-control: setup $(VENV)/.control

setup-wandb: setup $(VENV)/.wandb

setup-suites: setup $(VENV)/.suites

train: setup
	$(RUN) -m launch.train --agent=r2d2 --env=atari:pong --run_dir=runs/pong $(ARGS)

# Whole runs wait more than they compute, and others fill their gaps: but those give way to them,
# since a run that comes to nothing for long is taken for one that stands still.
test: lint setup-gcp setup-control setup-wandb setup-suites
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target test-runs test-agents test-others

# Halves that take equally long.
AGENTS := tests/agents tests/r2d2 tests/run_folder

test-agents: setup-gcp setup-control setup-suites
	$(GIVING_WAY) -m pytest -m "not launchpad" $(AGENTS)

test-others: setup-gcp setup-control setup-wandb setup-suites
	$(GIVING_WAY) -m pytest -m "not launchpad and not cloud" $(AGENTS:%=--ignore=%)

test-runs: setup-gcp setup-control setup-suites
	$(RUN) -m pytest -m "launchpad and not cloud"

test-fast: setup-gcp setup-control setup-wandb setup-suites
	$(RUN) -m pytest -m "not slow and not launchpad and not cloud"

test-cloud: setup-gcp
	$(RUN) -m pytest -m cloud

lint: setup
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy

format: setup
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format

# pip would compile on one core what compileall compiles on all, which is a quarter of the set-up.
# setuptools comes first because Acme has no wheel: it is built with the pinned setuptools, never with
# whatever an isolated build would fetch.
$(VENV)/.dependencies: $(LOCK)
	@python=$$(scripts/find_python.sh) && { test -x $(PYTHON) || "$$python" -m venv $(VENV); }
	@echo "Installing the packages of $(LOCK) into $(VENV): a minute or two." >&2
	@sed -n '/^setuptools==/,/[^\\]$$/p' $(LOCK) > $(VENV)/setuptools.lock
	@$(PIP) --require-hashes -r $(VENV)/setuptools.lock
	@$(PIP) --require-hashes --no-build-isolation --use-pep517 -r $(LOCK)
	@$(PYTHON) -m compileall -qq -j 0 $(VENV)/lib/python3.10/site-packages || true  # not all is meant for 3.10
	@touch $@

$(VENV)/.gcp: $(VENV)/.dependencies requirements-gcp.lock
	@echo "Installing the packages of requirements-gcp.lock into $(VENV)." >&2
	@$(PIP) --require-hashes -r requirements-gcp.lock
	@touch $@

$(VENV)/.control: $(VENV)/.dependencies requirements-control.lock
	@echo "Installing the packages of requirements-control.lock into $(VENV)." >&2
	@$(PIP) --require-hashes -r requirements-control.lock
	@touch $@

$(VENV)/.wandb: $(VENV)/.dependencies requirements-wandb.lock
	@echo "Installing the packages of requirements-wandb.lock into $(VENV)." >&2
	@$(PIP) --require-hashes -r requirements-wandb.lock
	@touch $@

$(VENV)/.suites: $(VENV)/.dependencies requirements-suites.lock
	@echo "Installing the packages of requirements-suites.lock into $(VENV)." >&2
	@$(PIP) --require-hashes -r requirements-suites.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.dependencies pyproject.toml
	@$(PIP) --no-index --no-build-isolation --editable .
	@touch $@

COMPILE = $(VENV)/bin/uv pip compile pyproject.toml --quiet --python-version 3.10 --group dev \
	--python-platform x86_64-manylinux_2_28 --generate-hashes --no-emit-index-url --no-header --no-annotate

lock: setup
	$(COMPILE) --group cpu $(LOCK_ARGS) --output-file requirements.lock
	$(COMPILE) --group gpu --constraint requirements.lock --output-file requirements-gpu.lock
	for group in gcp control wandb suites; do \
		$(COMPILE) --group cpu --group $$group --constraint requirements.lock \
			--output-file requirements-$$group.lock \
			$$(sed -n 's/^\([^ ]*\)==.*/--no-emit-package \1/p' requirements.lock) || exit; \
	done

build-files: setup
	$(PYTHON) -m bazel.generate

bazel: setup
	bazel build //...
	bazel test //... $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
