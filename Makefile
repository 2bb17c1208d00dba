# `make train` and `make test` set up whatever is missing and then do their job; see CONTRIBUTING.md.

VENV := .venv
PYTHON := $(VENV)/bin/python
ARGS ?=

# A machine on which nvidia-smi answers gets TensorFlow's GPU build; `make LOCK=... setup` overrides.
ifndef LOCK
LOCK := $(if $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes),requirements-gpu.lock,requirements.lock)
endif

SITE := $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet install --no-deps --no-compile

.PHONY: help setup setup-all setup-gcp setup-control setup-wandb setup-suites setup-docs site train test tests test-all lint format lock clean
.DEFAULT_GOAL := help

help:
	@echo "make train [ARGS=...]  set up, then train R2D2 on Atari Pong in runs/pong; ARGS reach launch.train"
	@echo "make test              set up, then lint, type checks and the tests of what a change can break: 20 minutes"
	@echo "make test-all          the rest too: long trainings, benchmarks, storms, hosts, Bazel's imports"
	@echo "make lint | format     check or fix the style"
	@echo "make lock              resolve the lock files anew (LOCK_ARGS=--upgrade moves the pins)"
	@echo "make setup | clean     make or remove the environment .venv"
	@echo "make setup-gcp         add to it what launching on Google Cloud takes"
	@echo "make setup-control     add to it the DeepMind Control Suite: docs/control.md"
	@echo "make setup-wandb       add to it Weights & Biases: docs/tools.md"
	@echo "make setup-suites      add to it MiniGrid, BabyAI and popgym: docs/environments.md"
	@echo "make site              build the pages of docs/ as a site, in site/: CONTRIBUTING.md"

setup: $(VENV)/.installed

# Optional packages, each group with a lock of its own.
ADDED := gcp control wandb suites docs

$(ADDED:%=setup-%): setup-%: setup $(VENV)/.%

setup-all: setup $(ADDED:%=$(VENV)/.%)

# Not --quiet, which hides warnings from --strict. Material's notice of mkdocs 2, which it does not use, is no warning.
site: setup-docs
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

train: setup
	$(PYTHON) -m launch.train --agent=r2d2 --env=atari:pong --run_dir=runs/pong $(ARGS)

# Three processes on two cores, since whole runs wait more than they compute. A module stays in one, for its fixtures.
PARALLEL := --numprocesses=3 --max-worker-restart=0 --dist=loadfile --no-loadscope-reorder

test: setup-all
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint tests

tests: setup-all
	$(PYTHON) -m pytest $(PARALLEL) -m "not slow"

test-all: test
	$(PYTHON) -m pytest $(PARALLEL) -m slow
	bazel test //... --test_env=PYTEST_ADDOPTS=--collect-only

lint: setup
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy

format: setup
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format

# pip would compile on one core what compileall compiles on all, which is a quarter of the set-up.
# setuptools comes first because Acme has no wheel: it is built with the pinned setuptools, never with
# whatever an isolated build would fetch. Launchpad's wheel is of Python 3.10 for its Courier, in whose
# place this project has its own; the rest of it is Python. Acme imports both. An environment whose making was cut
# short has an interpreter and no pip.
$(VENV)/.dependencies: $(LOCK) requirements-launchpad.lock
	@python=$$(scripts/find_python.sh) && { $(PYTHON) -m pip --version >/dev/null 2>&1 || "$$python" -m venv $(VENV); }
	@echo "Installing the packages of $(LOCK) into $(VENV): a minute or two." >&2
	@sed -n '/^setuptools==/,/[^\\]$$/p' $(LOCK) > $(VENV)/setuptools.lock
	@$(PIP) --require-hashes -r $(VENV)/setuptools.lock
	@$(PIP) --require-hashes --no-build-isolation --use-pep517 -r $(LOCK)
	@$(PIP) --require-hashes --upgrade --target "$$($(SITE))" --python-version 3.10 --only-binary :all: -r requirements-launchpad.lock
	@rm -r "$$($(SITE))/courier"
	@$(PYTHON) -m compileall -qq -j 0 "$$($(SITE))" || true  # not all is meant for this Python
	@touch $@

# One pip at a time, also under `make --jobs`: some packages are in several of these locks.
$(ADDED:%=$(VENV)/.%): $(VENV)/.%: $(VENV)/.dependencies requirements-%.lock
	@echo "Installing the packages of requirements-$*.lock into $(VENV)." >&2
	@flock $(VENV) $(PIP) --require-hashes -r requirements-$*.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.dependencies pyproject.toml
	@$(PIP) --no-index --no-build-isolation --editable .
	@touch $@

COMPILE = $(VENV)/bin/uv pip compile pyproject.toml --quiet --python-version 3.10 --group dev \
	--python-platform x86_64-manylinux_2_28 --generate-hashes --no-emit-index-url --no-header --no-annotate

lock: setup
	$(COMPILE) --group cpu $(LOCK_ARGS) --output-file requirements.lock
	$(COMPILE) --group gpu --constraint requirements.lock --output-file requirements-gpu.lock
	for group in launchpad $(ADDED); do \
		$(COMPILE) --group cpu --group $$group --constraint requirements.lock \
			--output-file requirements-$$group.lock \
			$$(sed -n 's/^\([^ ]*\)==.*/--no-emit-package \1/p' requirements.lock) || exit; \
	done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
