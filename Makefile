# agentctx: the developer's commands. Each sets up .venv by itself; nothing is installed outside of it.
#
#   make demo        the main job end to end on the embedded model (SmolLM2-135M, a 93 MB download)
#   make demo-code   the same on a pair of code models (0.5B drafts, 1.5B edits; 1.6 GB once)
#   make test        the default suite: no GPU, no hub
#   make lint        ruff, mypy, import contracts
#
# PYTHON picks the interpreter; PIP_ARGS goes to pip (an index, a wheelhouse, --no-index).

PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo demo-code test test-editors lint format docs clean

help:
	@sed -n 's/^#   //p' Makefile

$(READY): pyproject.toml constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "agentctx needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; set PYTHON=python3.11")'
	@command -v git >/dev/null || { echo "agentctx needs git"; exit 1; }
	@echo "== making $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV) || { echo "this Python has no venv module (on Debian: apt-get install python3-venv)"; exit 1; }
	@echo "== installing agentctx, torch and the development tools into $(VENV); torch is the large one"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' $(PIP_ARGS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt -e '.[torch]' --group dev $(PIP_ARGS)
	@touch $(READY)

demo: $(READY)
	@echo "== fetching the embedded model (once, 93 MB)"
	@$(BIN)/agentctx models fetch smollm2
	@$(BIN)/python tools/demo.py --drafter smollm2 --model smollm2 --samples 24

demo-code: $(READY)
	@echo "== fetching the code models (once, 1.6 GB)"
	@$(BIN)/agentctx models fetch qwen2.5-coder-0.5b
	@$(BIN)/agentctx models fetch qwen2.5-coder-1.5b
	@$(BIN)/python tools/demo.py --drafter qwen2.5-coder-0.5b --model qwen2.5-coder-1.5b --samples 1

test: $(READY)
	@echo "== fetching the model of the tests (once, 93 MB; without it the tests marked 'model' are skipped)"
	@$(BIN)/agentctx models fetch smollm2 || echo "== not fetched: the tests marked 'model' will be skipped"
	@echo "== running the default suite"
	@$(BIN)/python -m pytest

test-editors: $(READY)
	@echo "== building and packaging the VS Code extension"
	@cd vscode-ext && npm ci --no-audit --no-fund && npm run check && npm run build && npm run package
	@$(BIN)/python -m pytest tests/editors

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

format: $(READY)
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

docs: $(READY)
	@$(BIN)/python tools/cli_docs.py > docs/cli.md

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
