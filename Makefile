# What can be done with a checkout. `make help` lists it; git, make and Python 3.11+ are all it needs.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

# The first Python that will do: the engine has wheels for 3.11 to 3.14. PYTHON=… overrides it.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; \
	then echo $$p; break; fi; done)
endif
UV ?= uv

BIN := .venv/bin
RUNTIME := .venv/installed
DEVELOPMENT := .venv/installed-dev

# Of the variables that name an operator's own CA, older pips read one alone.
ifdef SSL_CERT_FILE
export PIP_CERT ?= $(SSL_CERT_FILE)
endif

# An environment that was made for another folder, or whose Python has gone, is made anew.
STALE := $(shell [ "$$(cat $(RUNTIME) 2>/dev/null)" = "$(CURDIR)" ] && $(BIN)/python -c '' 2>/dev/null || echo yes)

PIP = $(BIN)/python -m pip --disable-pip-version-check --no-input
INSTALL = $(PIP) install -qq --no-deps

.PHONY: help
help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# MODE, PROFILE, ENGINE, SITE, SERVICE, FILE, MODEL, BACK and YES reach the command through the environment.
BOX = $(BIN)/python -m deploy.box

.PHONY: up
up: install  ## Start everything, print a curl line that answers. MODE=box|local, PROFILE=name, ENGINE=vllm|llamacpp: decide yourself
	@$(BOX) up

# These do not install what is new under the feet of a running stack.
.PHONY: down
down: $(if $(STALE),install)  ## Stop it; calls under way may finish first
	@$(BOX) down

.PHONY: status
status: $(if $(STALE),install)  ## Show what runs, whether it is well, and the addresses
	@$(BOX) status

.PHONY: logs
logs: $(if $(STALE),install)  ## Follow the logs (the last lines if nothing runs): of all, or of one with SERVICE=name
	@$(BOX) logs

.PHONY: backup
backup: $(if $(STALE),install)  ## Save keys, usage, secrets and certificates in one file, while all goes on. FILE=where
	@$(BOX) backup

.PHONY: restore
restore: install  ## Put a backup back: FILE=which. Says what it replaces, and asks. YES=1: do not ask
	@$(BOX) restore

.PHONY: upgrade
upgrade: install  ## Bring the running stack to this checkout's version; back to the one before if it does not answer
	@$(BOX) upgrade

.PHONY: model
model: $(if $(STALE),install)  ## Serve another model, if it fits: MODEL=name, hub id or folder. BACK=1: the one before again
	@$(BOX) model

.PHONY: alert-test
alert-test: $(if $(STALE),install)  ## Send a test alert to where ALERT_URL leads, and say whether it was taken
	@$(BOX) alert-test

.PHONY: clean
clean: python  ## Delete what was made here: says what, and asks. YES=1: do not ask. CACHE=1: engine and weights too
	@$(PYTHON) -m deploy.box.clean $(if $(filter 1,$(YES)),--yes) $(if $(filter 1,$(CACHE)),--cache)

.PHONY: install
install: $(RUNTIME)  ## Install the gateway into .venv (.venv/bin/gateway)

.PHONY: check
check: $(DEVELOPMENT)  ## Format, lint, types, import contracts: the same for people and CI
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: test
test: tools check  ## All checks and all tests; installs what they need
	@$(BIN)/pytest

.PHONY: test-long
test-long: tools $(DEVELOPMENT)  ## The tests that make test leaves out: a real llama.cpp, compiled from source too
	@$(BIN)/pytest -m long

.PHONY: bench
bench: install  ## Measure the gateway beside nginx and a prototype: BENCH_KIT=folder of a load kit (docs/performance.md)
	@bench/run.sh $(BENCH_ARGS)

.PHONY: lock
lock:  ## Pin all dependencies anew (needs uv: UV=path)
	@printf 'hatchling\neditables\n' | $(COMPILE) --extra local pyproject.toml - -o requirements.lock
	@$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock
	@$(COMPILE) --excludes deploy/local/engine-excludes.txt deploy/local/engine-requirements.in \
		-o deploy/local/engine-requirements.txt
	@$(COMPILE) --no-deps deploy/local/llamacpp/wheel.in -o deploy/local/llamacpp/wheel.txt
	@$(COMPILE) --no-deps deploy/local/llamacpp/source.in -o deploy/local/llamacpp/source.txt
	@$(COMPILE) deploy/local/llamacpp/tools.in -o deploy/local/llamacpp/tools.txt

# Pins without the address of any index: pip asks the one that is configured where it runs.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

$(RUNTIME): requirements.lock pyproject.toml $(if $(STALE),stale)
	@echo "Installing the gateway into .venv (about half a minute) …" >&2
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-build-isolation --editable .
	@printf '%s' '$(CURDIR)' > $@

$(DEVELOPMENT): requirements-dev.lock $(RUNTIME)
	@echo "Installing the tools for checks and tests into .venv …" >&2
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

.PHONY: stale
stale: python
	@rm -rf .venv
	@$(PYTHON) -m venv .venv

.PHONY: python
python:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 to 3.14 is needed, and none was found: install one, or name it with PYTHON=path." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python 3.11 or newer is needed, and $(PYTHON) is older: name another with PYTHON=path." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; exit 1; }

# What tests need of the system: installed where that is possible (root on Debian), else said.
.PHONY: tools
tools:
	@command -v curl >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
		then apt-get update -qq && apt-get install -y -qq curl >/dev/null; \
		else echo "make: no curl here: tests that need it are skipped." >&2; fi
