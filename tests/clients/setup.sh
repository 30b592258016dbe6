#!/bin/bash
# Installs the clients that `python -m tests.clients FOLDER` drives: setup.sh FOLDER
# Vim and npm come with the system. PLUGINS: where owners' repositories are, another address or a folder of clones.
set -euo pipefail
CLIENTS="$(mkdir -p "$1/src" "$1/npm" "$1/pip" && cd "$1" && pwd)"
HERE="$(cd "$(dirname "$0")" && pwd)"
bash "$HERE/../editors/setup.sh" "$CLIENTS/editors" python nvim helix emacs node
export PATH="$CLIENTS/editors/node/bin:$PATH"
"$HERE/../../.venv/bin/pip" install -q pyte
command -v micro || apt-get -q -y install --no-install-recommends micro || echo "without micro"
for name in prabirshrestha/vim-lsp prabirshrestha/asyncomplete.vim prabirshrestha/asyncomplete-lsp.vim hrsh7th/nvim-cmp \
  hrsh7th/cmp-nvim-lsp Saghen/blink.cmp yegappan/lsp zbirenbaum/copilot.lua neoclide/coc.nvim github/copilot.vim \
  ggml-org/llama.vim milanglacier/minuet-ai.nvim nvim-lua/plenary.nvim AndCake/micro-plugin-lsp emacs-lsp/lsp-mode \
  copilot-emacs/copilot.el emacs-compat/compat; do
  folder="$CLIENTS/src/${name/\//+}"
  [ -d "$folder" ] || git clone -q --depth 1 "${PLUGINS:-https://github.com}/$name" "$folder" || echo "without $name"
done
# Each in an environment of its own: their wishes for one another's versions do not go together.
for package in openai litellm langchain-openai llama-index-llms-openai-like 'pydantic-ai-slim[openai]' instructor \
  openai-agents ollama llm mcp aider-chat; do
  folder="$CLIENTS/pip/${package%%[*}"
  [ -x "$folder/bin/python" ] || { python3 -m venv "$folder" && "$folder/bin/pip" install -q "$package"; } || echo "without $package"
done
cd "$CLIENTS/npm"
npm init -y >/dev/null
npm install --no-save opencode-ai @qwen-code/qwen-code @continuedev/cli @openai/codex openai ollama ai @ai-sdk/openai \
  @ai-sdk/openai-compatible @modelcontextprotocol/inspector
(cd node_modules/opencode-ai && node postinstall.mjs)
cd "$CLIENTS/src/neoclide+coc.nvim"
[ -f build/index.js ] || { npm install --ignore-scripts --no-package-lock && node esbuild.js; } || echo "without coc.nvim"
