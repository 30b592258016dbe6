#!/bin/bash
# Installs the clients that `python -m tests.clients FOLDER` drives: setup.sh FOLDER
# Vim and npm come with the system. PLUGINS: where owners' repositories are, another address or a folder of clones.
set -euo pipefail
CLIENTS="$(mkdir -p "$1/src" "$1/npm" && cd "$1" && pwd)"
HERE="$(cd "$(dirname "$0")" && pwd)"
bash "$HERE/../editors/setup.sh" "$CLIENTS/editors" python nvim helix emacs node
"$HERE/../../.venv/bin/pip" install -q pyte
for name in prabirshrestha/vim-lsp prabirshrestha/asyncomplete.vim prabirshrestha/asyncomplete-lsp.vim hrsh7th/nvim-cmp \
  hrsh7th/cmp-nvim-lsp Saghen/blink.cmp yegappan/lsp zbirenbaum/copilot.lua; do
  folder="$CLIENTS/src/${name/\//+}"
  [ -d "$folder" ] || git clone -q --depth 1 "${PLUGINS:-https://github.com}/$name" "$folder"
done
cd "$CLIENTS/npm"
npm init -y >/dev/null
npm install --no-save opencode-ai @qwen-code/qwen-code @continuedev/cli
(cd node_modules/opencode-ai && node postinstall.mjs)
