#!/bin/bash
# Installs the editors and the server where they are missing, packs the extension, runs the tests: run.sh [pytest options]
# REDRAFT_EDITORS is where the editors go (default: .editors), REDRAFT_COMMAND the server's command.
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
export REDRAFT_EDITORS="${REDRAFT_EDITORS:-$ROOT/.editors}"
if [ -z "${REDRAFT_COMMAND:-}" ]; then
  export REDRAFT_COMMAND="$ROOT/.venv/bin/redraft"
  if [ ! -x "$REDRAFT_COMMAND" ]; then
    "${REDRAFT_PYTHON:-python3}" -m venv "$ROOT/.venv"
    "$ROOT/.venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$ROOT/constraints.txt" --editable "$ROOT"
  fi
fi
"$HERE/setup.sh" "$REDRAFT_EDITORS"
REDRAFT_EDITORS="$(cd "$REDRAFT_EDITORS" && pwd)"
"$ROOT/editor-clients/vscode/build.sh" "$REDRAFT_EDITORS/redraft.vsix"
cd "$ROOT"
exec "$REDRAFT_EDITORS/python/bin/python" -m pytest -m editors -p no:cacheprovider -W ignore::pytest.PytestConfigWarning tests/editors "$@"
