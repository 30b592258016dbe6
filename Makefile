PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEVELOPMENT := $(VENV)/.development

.PHONY: demo release release-check minutes test test-all test-bench test-long test-model test-editors test-arm test-arm-products lint format bench serve vsix clean

# The environment is made once and again whenever the dependencies change. Redraft runs without
# torch; tests compare with it.
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@
$(DEVELOPMENT): $(READY)
	$(INSTALL) --editable '.[dev,bench]'
	touch $@

demo: $(READY)
	$(BIN)/redraft demo

# Every core compiles what models and drafters run before the tests need it. Then workers take files in
# turn, one more than a small machine has cores, since tests wait for the processes that they start.
# Hundreds of processes start: their bytecode is kept.
define run_tests
$(BIN)/python -m compileall -q accel lsp_server operating_system repo_index
$(BIN)/python -m tests.compiled_code
PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(1) -m "$(2)"
endef
WORKERS ?= 3
USUAL := not long and not editors and not model and not arm
# What finds faults cheaply.
test: $(DEVELOPMENT)
	$(call run_tests,--ignore tests/benchmarks --ignore tests/editors --ignore tests/release,$(USUAL) and not slow)

# That, the laboratory, what guards a release, and whatever is slow.
test-all: $(DEVELOPMENT)
	$(call run_tests,,$(USUAL))

# The laboratory: peers, replays, tables.
test-bench: $(DEVELOPMENT)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile tests/benchmarks

# Minutes each: soaks, and as many rounds as were ever worth it of the tests that count their rounds.
test-long: $(DEVELOPMENT)
	$(BIN)/python -m pytest -m long --timeout 1800

# REDRAFT_TEST_DEFAULT names the default model's file; without it the model is fetched once.
test-model: $(DEVELOPMENT)
	file="$${REDRAFT_TEST_DEFAULT:-$$($(BIN)/python -c 'from lsp_server.models.fetching import fetch; from lsp_server.models.manifest import DEFAULT, find_offered, read_manifest; print(fetch(find_offered(read_manifest(), DEFAULT)))')}" && \
	REDRAFT_TEST_DEFAULT="$$file" $(BIN)/python -m pytest -m model --timeout 900

test-editors: $(DEVELOPMENT)
	tests/editors/run.sh

# On an emulated Arm: needs Debian 12 and its Python 3.11. Code is compiled here, where it is quick.
ARM ?= build/arm
test-arm: $(DEVELOPMENT)
	PYTHON=$(BIN)/python tests/arm/land.sh $(ARM)
	$(BIN)/python -m tests.arm.cross_compile $(ARM)/compiled
	REDRAFT_ARM=$(abspath $(ARM)) $(BIN)/python -m pytest -m arm tests/arm

# Of that what takes minutes, on a land that is there.
test-arm-products: $(DEVELOPMENT)
	REDRAFT_ARM=$(abspath $(ARM)) $(BIN)/python -m pytest -m arm tests/arm -k "level or products"

lint: $(DEVELOPMENT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEVELOPMENT)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# CASES is a folder of measuring cases (format: tests/benchmarks/README.md).
CASES ?= ../shared/cases
# Replays need its tokenizer alone.
MODEL ?= tests/data/small_model
RESULTS ?= build/bench
bench: $(DEVELOPMENT)
	mkdir -p $(RESULTS)
	$(BIN)/python -m tests.benchmarks completion --cases $(CASES)/completion_repoeval.jsonl --target replay --model $(MODEL) --json $(RESULTS)/completion-64.json
	$(BIN)/python -m tests.benchmarks completion --cases $(CASES)/completion_repoeval.jsonl --target replay --max-nodes 8 --model $(MODEL) --json $(RESULTS)/completion-8.json
	$(BIN)/python -m tests.benchmarks edit --cases $(CASES)/edit_canitedit.jsonl --target replay --model $(MODEL) --json $(RESULTS)/edit-canitedit.json
	$(BIN)/python -m tests.benchmarks edit --cases $(CASES)/edit_commits.jsonl --target replay --model $(MODEL) --json $(RESULTS)/edit-commits.json
	$(BIN)/python -m tests.benchmarks forward --model $(MODEL) --json $(RESULTS)/forward.json
	$(BIN)/python -m tests.benchmarks index --repo . --json $(RESULTS)/index.json

serve: $(READY)
	$(BIN)/redraft serve

vsix:
	editor-clients/vscode/build.sh

# What is released of this version, in dist/; npm and the package indexes are needed.
release: $(DEVELOPMENT)
	$(BIN)/python -m release build dist

# Each file in an empty environment, up to the first suggestion of a model. NEOVIM names a Neovim to try the plug-in in.
NEOVIM ?= $(shell command -v nvim || ls .editors/nvim/nvim 2>/dev/null)
RELEASE_MODEL ?= tests/data/small_model
release-check: $(DEVELOPMENT)
	$(BIN)/python -m release check dist --model $(RELEASE_MODEL) $(if $(NEOVIM),--neovim $(NEOVIM))

# What a new user waits for: the seconds from the built files to a suggestion in VS Code and in Neovim.
minutes: release
	tests/editors/setup.sh .editors python chromium node code-server nvim
	PYTHONPATH=tests .editors/python/bin/python tests/editors/two_minutes.py dist

clean:
	rm -rf build dist $(VENV)
