# Everything a fresh machine needs: Python 3.11, make, pip.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
KERNELS := .venv/.compiled
# Of `make compat`: how many cases the judges draw, and by which seed.
EXAMPLES ?= 5000
SEED ?= 0
# Every process of the tests would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test quick test-oldest compat lint bench clean

install: $(STAMP) $(KERNELS)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,demo]'
	touch $@

# About a minute, once; otherwise every kernel compiles at its first call.
$(KERNELS): $(STAMP) $(wildcard src/mlopt/kernels/*.py)
	$(BIN)/python -m mlopt.kernels
	touch $@

demo: install
	$(BIN)/python examples/flights.py --output demo

# Processes share the cores: their libraries must not take all of them each. One more than
# cores, for a fifth of the time is waited: for workers to start, clocks to run out, disks.
# Each takes up to a GiB, so that nine are enough.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: install
	$(BIN)/python -m pytest --dist worksteal \
		-n $$($(BIN)/python -c 'import joblib; print(min(joblib.cpu_count(), 8) + 1)')

# For the inner loop: nothing slow, no processes of its own.
quick: export OMP_NUM_THREADS = 1
quick: export OPENBLAS_NUM_THREADS = 1
quick: export MLOPT_TESTS = quick
quick: install
	$(BIN)/python -m pytest $(QUICK)

# Not the suites that other people wrote, nor what is drawn; few examples of each property.
QUICK := -n 2 --dist worksteal -q -m "not slow and not cluster" --ignore tests/compat \
	--ignore tests/judges --ignore-glob "*test_estimator_checks.py"

# The same with the lower bounds of pyproject.toml.
test-oldest: export OMP_NUM_THREADS = 1
test-oldest: export OPENBLAS_NUM_THREADS = 1
test-oldest: export MLOPT_TESTS = quick
# Another Numba would write over the kernels of the usual environment.
test-oldest: export NUMBA_CACHE_DIR = $(CURDIR)/.venv-oldest/kernels
test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/python -m pytest $(QUICK)

.venv-oldest/.installed: pyproject.toml constraints-oldest.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints-oldest.txt -e '.[dev]'
	touch $@

# scikit-learn's own tests, on our classes; and thousands of drawn cases.
compat: export OMP_NUM_THREADS = 1
compat: export OPENBLAS_NUM_THREADS = 1
compat: install
	$(BIN)/python -m pytest -n 2 --dist worksteal -p no:randomly -rfE tests/compat
	MLOPT_JUDGE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n 2 --dist worksteal \
		--hypothesis-seed=$(SEED) tests/judges tests/streaming/test_schedules.py tests/server/test_interleavings.py

lint: install
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: export DASK_MLOPT__REMEMBER = false
bench: install $(addsuffix /.installed,.venv-dask-ml .venv-peers .venv-factors .venv-serving-peers)
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/blocks.py
	$(BIN)/python benchmarks/search.py --dask-ml .venv-dask-ml/bin/python
	$(BIN)/python benchmarks/prefixes.py
	$(BIN)/python benchmarks/solvers.py --peers .venv-peers/bin/python
	$(BIN)/python benchmarks/plans.py
	$(BIN)/python benchmarks/foresight.py
	$(BIN)/python benchmarks/ridge.py
	$(BIN)/python benchmarks/l1.py --peers .venv-peers/bin/python
	$(BIN)/python benchmarks/choices.py
	$(BIN)/python benchmarks/pipelines.py
	$(BIN)/python benchmarks/ordinary.py
	$(BIN)/python benchmarks/keeping.py
	$(BIN)/python benchmarks/streaming.py
	$(BIN)/python benchmarks/serving.py --peers .venv-serving-peers/bin/python
	$(BIN)/python benchmarks/gates.py
	$(BIN)/python benchmarks/predict_files.py
	$(BIN)/python benchmarks/mesh.py
	$(BIN)/python benchmarks/jobs.py
	$(BIN)/python benchmarks/server_planner.py
	$(BIN)/python benchmarks/server_emulated.py
	$(BIN)/python benchmarks/server_moves.py
	$(BIN)/python benchmarks/large_model.py
	$(BIN)/python benchmarks/large_model.py --layout servers
	$(BIN)/python benchmarks/rotate.py
	$(BIN)/python benchmarks/layouts.py
	$(BIN)/python benchmarks/factors.py --peers .venv-factors/bin/python
	$(BIN)/python benchmarks/topics.py --peers .venv-factors/bin/python
	$(BIN)/python benchmarks/rotate_topics.py
	$(BIN)/python benchmarks/tupaq.py
	$(BIN)/python benchmarks/applications/sift_fisher.py
	$(BIN)/python benchmarks/applications/sentiment.py
	$(BIN)/python benchmarks/applications/speech.py
	$(BIN)/python benchmarks/applications/patches.py

# The newest versions that dask-ml's searches work with, apart from ours.
.venv-dask-ml/.installed: benchmarks/dask-ml.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Other solvers of linear models.
.venv-peers/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Other factorizations of ratings.
.venv-factors/.installed: benchmarks/factors.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Another service, which is given our models.
.venv-serving-peers/.installed: benchmarks/serving-peers.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e . -r $<
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-dask-ml .venv-peers .venv-factors .venv-serving-peers demo
