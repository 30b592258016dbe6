#!/bin/bash
# Checks, tests, bundles and packs the extension: build.sh [OUT.vsix]. Needs npm and Node 20 or newer, Python 3.
# REDRAFT_WHEEL names the wheel that comes into it; without it one is built.
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
EDITORS="${REDRAFT_EDITORS:-$HERE/../../.editors}"
OUT="$(realpath -m "${1:-$HERE/redraft.vsix}")"
cd "$HERE"
if [ -x "$EDITORS/node/bin/node" ]; then export PATH="$EDITORS/node/bin:$PATH"; fi
lock="$(cat package-lock.json; node --version)"
if [ ! -f node_modules/.lock ] || [ "$(cat node_modules/.lock)" != "$lock" ]; then
  npm ci --ignore-scripts --no-audit --no-fund
  echo "$lock" >node_modules/.lock
fi
npm run --silent lint
npm run --silent test
npm run --silent bundle
REDRAFT_UV="${REDRAFT_UV:-$(ls "$EDITORS/python/bin/uv" 2>/dev/null || true)}" python3 ../server/pack.py dist/server ${REDRAFT_WHEEL:+"$REDRAFT_WHEEL"}
python3 scripts/package.py "$OUT"
