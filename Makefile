# Two commands set everything up on a fresh machine: `make plan` and `make test`. Both are quick the second time.
#   make plan                                    the main job on Reacher
#   make plan ENV=point_mass ARGS="--budget quick"
#   make test                                    the tests (make test ARGS="-m slow" for the long ones)
#   make lint                                    style and types
#   make matrix                                  set-up and tests on every Python from 3.11 to 3.13 that is found here
#   make neighbours                              libraries with an LLVM or OpenMP of their own, in one process with ours
#   make constraints                             pin anew what pyproject.toml leaves open, for all these Pythons
PYTHON ?= python3
VENV ?= .venv
ENV ?= reacher
ARGS ?=
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python

.PHONY: plan test lint setup matrix neighbours constraints clean

plan: $(READY)
	@$(RUN) scripts/plan.py --env $(ENV) $(ARGS)

# Two processes with one thread each: more threads than cores wait for each other, which costs minutes.
test: $(READY)
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 --dist loadfile $(ARGS)

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup.sh
	@touch $@

# mypy cannot follow the default editable install (envs/ is imported as worldmodel.envs), so it reads a regular one.
lint: $(READY)
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@rm -rf build/types && $(RUN) -m pip install -q --no-deps --no-build-isolation --target build/types . && rm -rf build/lib build/bdist*
	@MYPYPATH=build/types $(RUN) -m mypy -p worldmodel

matrix:
	@sh scripts/matrix.sh $(ARGS)

neighbours:
	@VENV=build/neighbours PYTHON="$(PYTHON)" EXTRAS=dev sh scripts/setup.sh
	@build/neighbours/bin/python -m pip install -q numba jax tensorflow-cpu pygame
	@build/neighbours/bin/python -m pytest -m slow tests/test_neighbours.py $(ARGS)

# Keeps the pins there are; `make constraints ARGS=--upgrade` takes the newest. constraints.txt is the exact set that the
# tests passed with; pyproject.toml says in comments why a range ends.
constraints: $(READY)
	@$(RUN) -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --strip-extras --no-annotate --custom-compile-command "make constraints" --quiet --output-file constraints.txt $(ARGS)

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache
