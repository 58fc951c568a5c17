# Every command of the project. `make` alone lists them.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
STAMP  := $(VENV)/.stamp

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test test-all test-bounds test-lowest test-browser walk packages kills kills-workers lint format types imports attack compile-times bench-chunking bench-predict bench-dicts bench-brown bench-ocr bench-threads bench-shards bench-shard-combinations bench-workers bench-memory bench-scale bench-ablation bench-audit bench-labels bench-mincut bench-door bench-multiclass bench-slack bench-ramp-end bench-against experiment-ring experiment-connect4 experiment-chunking-hmm experiment-adaptation experiment-snakes experiment-horses experiment-horses-solvers experiment-grid-scaling experiment-hippocampus experiment-pictures experiment-strokes experiment-lp-tagging experiment-ramp-table experiment-ramp-passes experiment-ramp-outliers experiment-neighbours experiment-hierarchies experiment-labels-searches experiment-labels-table experiment-labels-convergence experiment-alignment experiment-reranking experiment-translation experiment-translation-lattices experiment-hopkins-may bench-lp bench-matching bench-lattice clean experiment-lp-corpora

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  \033[1m%-26s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## create the virtual environment; install the package and its development tools

$(STAMP): pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: setup  ## learn to read handwritten words made of digits
	$(RUN) examples/digit_words.py

DOCS_STAMP := $(VENV)/.stamp-docs

$(DOCS_STAMP): $(STAMP)
	$(RUN) -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

docs: $(DOCS_STAMP)  ## the documentation site, in build/docs; warnings are errors; links and search are checked
	$(RUN) -m sphinx -E -W --keep-going -q -b html docs build/docs
	$(RUN) -m pytest -q -m "" tests/site
	@echo "Open build/docs/index.html"

test: lint types imports  ## check style, types and import direction; run the fast tests
	$(RUN) -m pytest -q -n 2

test-all: lint types imports  ## the same, with the slow tests
	$(RUN) -m pytest -q -n 2 -m ""

BOUNDS := tests/test_bounds.py tests/test_fuzz_input.py tests/inference tests/models tests/oracles tests/features tests/solvers

test-bounds: setup  ## kernels compiled with bounds checks: their tests, fuzzers, and a fit of each estimator
	MAXMARGIN_BOUNDSCHECK=1 $(RUN) -m pytest -q -n 2 $(BOUNDS)

LOWEST := .venv-lowest

test-lowest: setup  ## the fast tests with the lowest versions that pyproject.toml declares, in an environment of its own
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(RUN) tools/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/constraints.txt -e ".[dev,viz,images,text,interop,lp]"
	$(LOWEST)/bin/python -m pytest -q -n 2

test-browser: setup  ## reports in a real browser, at three widths and in both themes (apt install chromium)
	$(RUN) -m pytest -q -m "" tests/browser

walk: setup  ## a newcomer's walk through the README in a new environment: seconds of each task, compilation included
	$(RUN) -m pytest -q -s -m "" tests/walk

packages: setup  ## build wheel and source distribution; check contents, metadata, extras and a plain install
	$(RUN) -m pytest -q -m "" tests/packaging

kills: setup  ## 300 kills at random moments: every fit ends as if it had not been killed, nothing is left behind
	$(RUN) tools/kills.py

kills-workers: setup  ## 100 kills of workers (processes, Ray actors) at random moments, and of drivers
	$(RUN) tools/record.py tools/kills_workers.py --executor ray
	$(RUN) tools/record.py --as kills_processes tools/kills_workers.py --executor processes

lint: setup  ## check style and formatting
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

format: setup  ## format the code and fix what can be fixed automatically
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

types: setup  ## check the types of the package
	$(RUN) -m mypy

imports: setup  ## check that imports point in one direction
	$(RUN) tools/check_imports.py

attack: setup  ## hostile files and arrays for every door, each in a process with limits (under 15 minutes)
	$(RUN) -m tools.attack

compile-times: setup  ## processor seconds to compile each kernel of a first fit
	$(RUN) tools/compile_times.py

bench-chunking: setup  ## CoNLL-2000 chunking compared with other libraries (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/chunking.py

bench-predict: setup  ## prediction, training from files, and model files compared with python-crfsuite (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/predict.py

bench-dicts: setup  ## prediction from dict features compared with python-crfsuite (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/dicts.py

bench-brown: setup  ## Brown parts of speech, 472 labels, compared with python-crfsuite (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/brown.py

bench-ocr: setup  ## handwritten words by all solvers (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/ocr.py

bench-threads: setup  ## how training scales with threads (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/threads.py

bench-workers: setup  ## what Ray and processes cost over threads; their memory over 4,000 rounds
	$(RUN) tools/record.py benchmarks/workers.py --processes
	$(RUN) tools/record.py --as workers_memory benchmarks/workers.py --memory 4000 --out docs/_static/workers_memory.png

bench-shards: setup  ## seconds of the sharded solver on one and two threads (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/shards.py

bench-shard-combinations: setup  ## passes by the number of shards and how their changes are combined (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/shard_combinations.py --seconds 240

bench-memory: setup  ## train on five times the memory that the system allows, from a pack that is mapped
	$(RUN) tools/record.py benchmarks/memory.py

bench-scale: setup  ## a cost model of large runs from constants measured here
	$(RUN) tools/record.py benchmarks/scale.py

bench-ablation: setup  ## what each acceleration of the default solver is worth (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/ablation.py

bench-audit: setup  ## finding wrong labels in CoNLL-2000, compared with python-crfsuite (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/audit.py

bench-labels: setup  ## multi-label Yeast: exact queries and certified fits (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/labels.py

bench-mincut: setup  ## minimum cuts of grids compared with PyMaxflow (pip install PyMaxflow)
	$(RUN) tools/record.py benchmarks/min_cut.py

bench-door: setup  ## what the checks of arrays from outside cost, as a share of a pass
	$(RUN) tools/record.py benchmarks/door.py

bench-matching: setup  ## matchings of 20 x 20 words: pairs a second, certified training
	$(RUN) tools/record.py benchmarks/matching.py

bench-lattice: setup  ## lattices of up to 300,000 arcs: best path, 100 best outputs, training time by arcs
	$(RUN) tools/record.py benchmarks/lattice.py

bench-lp: setup  ## linear programs of L1 penalties compared with HiGHS and OR-tools (pip install highspy ortools)
	$(RUN) tools/record.py benchmarks/linear_programs.py

bench-multiclass: setup  ## sparse multiclass problems compared with liblinear's Crammer-Singer machine
	$(RUN) tools/record.py benchmarks/multiclass.py

bench-slack: setup  ## what a pass of exact slack rescaling costs on CoNLL-2000, in margin passes (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/slack.py

bench-ramp-end: setup  ## how long a ramp fit goes on after its objective has settled (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/ramp_end.py

bench-against: setup  ## speed compared with an earlier commit: make bench-against COMMIT=... (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py benchmarks/against.py $(COMMIT)

experiment-ring: setup  ## tracking on a ring with a discriminatively trained HMM (figure 1, table 1)
	$(RUN) tools/record.py experiments/generative/ring.py

experiment-snakes: setup  ## snakes: graphs with unary, directional and conditional edges (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/segmentation/snakes.py

experiment-horses: setup  ## horses: pixels alone, one smoothness weight, learned edges (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/segmentation/horses.py

experiment-horses-solvers: setup  ## horses: gap against time and cuts, by solver (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py --as horses_solvers experiments/segmentation/horses.py --solvers

experiment-grid-scaling: setup  ## cost of a pass over images, by their size
	$(RUN) tools/record.py experiments/segmentation/scaling.py

experiment-hippocampus: setup  ## segmentation in three dimensions (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/segmentation/hippocampus.py

experiment-pictures: setup  ## four sets of pictures: learned, classifier, one smoothness weight (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/segmentation/pictures.py

experiment-strokes: setup  ## strokes on horses: ours, grabCut, random walker (needs MAXMARGIN_DATA, opencv-python-headless)
	$(RUN) tools/record.py --as strokes experiments/segmentation/pictures.py --interactive

experiment-neighbours: setup  ## what 8, 18 and 26 neighbours cost in time and memory, per edge
	$(RUN) tools/record.py experiments/segmentation/neighbours.py

experiment-connect4: setup  ## Connect-4 with a discriminatively trained Bayesian network (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/generative/connect4.py

experiment-chunking-hmm: setup  ## chunks from parts of speech with hidden Markov models and few sentences (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/generative/chunking_hmm.py

experiment-adaptation: setup  ## adapting an HMM tagger to biomedical abstracts (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/generative/adaptation.py

experiment-lp-tagging: setup  ## parts of speech by linear programs and their peers, with figures (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/linear_programs/tagging.py --constants 10 1 1 --figures outputs/linear_programs

experiment-lp-corpora: setup  ## the solver of linear programs on chunking and letters (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/linear_programs/corpora.py --examples 1500 --seconds 60

experiment-ramp-table: setup  ## hinge and ramp: six methods, two corpora (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/ramp/table_5_1.py

experiment-ramp-passes: setup  ## hinge and ramp: score against passes (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/ramp/figure_4_1.py

experiment-hierarchies: setup  ## labels in hierarchies: areas under precision-recall curves, slack and margin (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/labels/hierarchies.py
	$(RUN) tools/record.py --as hierarchies_slack experiments/labels/hierarchies.py --slack

experiment-ramp-outliers: setup  ## hinge and ramp with sentences relabelled at random (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/ramp/figure_5_1.py --methods SDM Pegasos auto --no-tune

experiment-labels-searches: setup  ## searches for the most violating set on identical training states (needs MAXMARGIN_DATA, highspy)
	$(RUN) tools/record.py experiments/labels/table_1.py
	$(RUN) tools/record.py experiments/labels/searches_by_name.py

experiment-labels-table: setup  ## Yeast and RCV1: slack against margin rescaling, beside scikit-learn (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/labels/table_2.py
	$(RUN) tools/record.py --as table_2_rcv1 experiments/labels/table_2.py --data rcv1

experiment-labels-convergence: setup  ## Yeast: solvers and searches, against seconds, queries and passes (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/labels/figure_4.py

experiment-alignment: setup  ## word alignment on the Hansards, with and without Europarl (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/alignment/hansards.py

experiment-reranking: setup  ## n-best lists of Moses, cross-validated: margin, ramp, L1, several good (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/lattices/reranking.py

experiment-translation: setup  ## phrase-based translation tuned by MERT, PRO, margins and linear programs (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/translation/table.py

experiment-translation-lattices: setup  ## what training on lattices needs: reachable good outputs, the price of a word (needs MAXMARGIN_DATA)
	$(RUN) tools/record.py experiments/translation/lattices.py

experiment-hopkins-may: setup  ## tuning on synthetic lists: cosine to the true weights, by the number of features
	$(RUN) tools/record.py experiments/translation/hopkins_may.py

clean:  ## remove the environment, the caches and the outputs
	rm -rf $(VENV) $(LOWEST) docs/reference docs/examples .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks build dist outputs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
