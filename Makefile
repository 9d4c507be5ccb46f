# The jobs stand in make.py, so that they run on systems without make too: python make.py demo
PYTHON ?= python3
JOBS := demo figures notebooks docs packages test check coverage test-slow bench

.PHONY: help $(JOBS)
.DEFAULT_GOAL := help

help $(JOBS):
	@$(PYTHON) make.py $@
