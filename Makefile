# sifwright's two-command set-up; every target here is a thin line over a program in tools/ or
# .venv/bin.
#
#   make sif SITE=local IMAGE=pytorch SET="layer.option=value layer.option='two words'"
#
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.NOTPARALLEL:
.DEFAULT_GOAL := help

# An empty IMAGE is the default image of the site.
SITE ?= local
IMAGE ?=
NODES ?=
SET ?=
SCRIPT ?=
JOB ?=
LAYOUT ?=
ENGINE ?=
TESTS ?=
PYTEST ?=
V ?=
DATE ?=
REQUIREMENTS ?=
LOCK ?=
NAME ?=
ONLY ?=
PREFIX ?=
SUBMIT ?=
MATRIX ?=
SIGN ?=
# Values of a user are data. make would expand `$(shell …)` in them, and the shell `$(…)`. So each
# is read once, unexpanded, and reaches the recipes through the environment only.
override SITE := $(value SITE)
override IMAGE := $(value IMAGE)
override NODES := $(value NODES)
override SET := $(value SET)
override SCRIPT := $(value SCRIPT)
override JOB := $(value JOB)
override LAYOUT := $(value LAYOUT)
override ENGINE := $(value ENGINE)
override TESTS := $(value TESTS)
override PYTEST := $(value PYTEST)
override V := $(value V)
override DATE := $(value DATE)
override REQUIREMENTS := $(value REQUIREMENTS)
override LOCK := $(value LOCK)
override NAME := $(value NAME)
override ONLY := $(value ONLY)
override PREFIX := $(value PREFIX)
override SUBMIT := $(value SUBMIT)
override MATRIX := $(value MATRIX)
override SIGN := $(value SIGN)
export SITE IMAGE NODES SET SCRIPT JOB LAYOUT ENGINE TESTS PYTEST V DATE REQUIREMENTS LOCK NAME \
  ONLY PREFIX SUBMIT MATRIX SIGN
# A cluster's Python module sets these for another Python than the one in .venv.
unexport PYTHONHOME PYTHONPATH

# Python keeps what it has compiled: the tests start hundreds of processes.
PYTEST_COMMAND = env -u PYTHONDONTWRITEBYTECODE xargs .venv/bin/python -m pytest -n 2 \
  --no-loadscope-reorder --second-try

.PHONY: help sif native docker extend lock plan def dockerfile list easyconfig easyconfigs \
  jobscript check check-comm test test-all test-slow constraints lint docs man bench clean clean-old \
  venv venv-plot venv-dev apptainer

help: ## Show this list
	@printf 'usage: make TARGET [SITE=local] [IMAGE=…] [SET="layer.option=value …"] [V=1]\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r target text; do \
	  printf '  %-11s %s\n' "$$target" "$$text"; done

sif: venv apptainer ## Build and test build/SITE/IMAGE/image.sif (LAYOUT=layered, ENGINE=docker, SIGN=key.pem; SUBMIT=1: by jobs, MATRIX=layer.option=a,b: several)
	@tools/run-sifwright build

native: venv ## Install the layers of IMAGE on the host of SITE, below PREFIX=DIR (SUBMIT=1: by a job)
	@tools/run-sifwright install

docker: venv ## Build and test the image sifwright/IMAGE:SITE with Docker Engine or podman
	@ENGINE= tools/run-sifwright build --engine docker

extend: venv apptainer ## Build the image with the packages of REQUIREMENTS=r.txt or LOCK=uv.lock as its last layer (NAME=…)
	@tools/run-sifwright extend

lock: venv apptainer ## Write locks/pylock.SITE-IMAGE.toml: every package of the image with its sha256
	@tools/run-sifwright lock

plan: venv ## Show the layers, and which of them a build here would run, and why (V=1: every option's value and origin)
	@tools/run-sifwright plan

def: venv ## Write build/SITE/IMAGE/recipe/: a short definition file with the files that it copies
	@tools/run-sifwright render

dockerfile: venv ## Write the same folder with a Dockerfile whose base image is named by digest
	@tools/run-sifwright render --format dockerfile

list: venv ## List the sites, images and layers
	@.venv/bin/sifwright list

easyconfig: venv ## Write what `eb` installs: build/SITE/IMAGE/easybuild/ with the image, run scripts and module
	@tools/run-sifwright easyconfig

easyconfigs: venv ## Write easyconfigs/ again, for sites with an image of their own (DATE=YYYYMMDD)
	@tools/write-easyconfigs

jobscript: venv ## Print the batch script that runs SCRIPT="train.py …" on NODES=2 (JOB="--account x …")
	@tools/write-jobscript

check: venv ## Say whether this machine can build images, and how to mend what is missing
	@tools/run-sifwright check

check-comm: venv-plot apptainer ## Time the collectives in the image, and prove the network they use (NODES=: of an allocation)
	@tools/run-sifwright check-comm

test: ## Run the checks and the tests of tiers unit and smoke (PYTEST="-k name": only these)
	@tools/prepare-tests $(MAKE) --no-print-directory lint
	@$(PYTEST_COMMAND) -m "unit or smoke" <<<"$$PYTEST"

test-all: ## Run the tests of tier all, which 'make test' leaves out
	@tools/prepare-tests
	@$(PYTEST_COMMAND) -m "all and not slow" <<<"$$PYTEST"

test-slow: ## Run the tests of tier slow: whole stacks built from source, long series
	@tools/prepare-tests
	@$(PYTEST_COMMAND) -m slow <<<"$$PYTEST"

constraints: venv-dev ## Raise the versions of all that tests and checks run with
	@.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
	  --no-header --no-annotate --output-file tests/constraints.txt pyproject.toml

# The second call: every open() and read_text() names its encoding.
lint: venv-dev ## Run ruff, mypy, codespell and shellcheck
	@.venv/bin/ruff check --quiet
	@.venv/bin/ruff check --quiet --preview --select PLW1514
	@.venv/bin/ruff format --check --quiet
	@.venv/bin/mypy
	@.venv/bin/codespell
	@tools/lint-shell

docs: venv
	@.venv/bin/python -m tests.tooling.command_reference >docs/reference/commands.md

man: venv-dev ## Write build/sifwright.1, the manual page; shell completion: `sifwright --print-completion bash`
	@mkdir -p build
	@.venv/bin/argparse-manpage --module sifwright.cli.main --function parser \
	  --project-name sifwright \
	  --description 'composes, builds and proves container images for supercomputers' \
	  --manual-title 'sifwright manual' --format single-commands-section --output build/sifwright.1

bench: venv-dev ## Measure against the usual tools (an hour; ONLY=build,rebuild; docs/reference/benchmarks.md)
	@.venv/bin/python benchmarks/run.py $${ONLY:+--only "$$ONLY"}

clean-old: ## Remove images of SITE (and IMAGE) that a later build replaced
	@tools/remove-old-images

clean: ## Remove build/ with every image in it; .venv stays
	@if [[ -e build ]]; then \
	  printf 'sifwright: removing build/:\n'; \
	  find build -mindepth 2 -maxdepth 2 -exec du -sh {} +; \
	  rm -rf build; \
	else \
	  printf 'sifwright: nothing to remove: there is no build/\n'; \
	fi

venv:
	@tools/make-venv

venv-plot:
	@tools/make-venv --plot

venv-dev:
	@tools/make-venv --dev

apptainer: venv
	@tools/install-apptainer --best-effort .venv/.sifwright-apptainer
