"""Drives what is installed in a folder and prints a table: ``python -m tests.clients FOLDER [NAME
...]``. ``setup.sh FOLDER`` fills it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.clients import agents, editors


def main(clients: Path, names: list[str]) -> int:
    """Drive the clients of ``names``, all by default; 1 if one fails or loses text."""
    failed = 0
    programs = clients / "npm" / "node_modules" / ".bin"
    with tempfile.TemporaryDirectory(
        prefix="redraft-clients-", ignore_cleanup_errors=True
    ) as folder:
        for name in names or [*editors.EDITORS, *agents.AGENTS]:
            work = Path(folder) / name.replace("/", "-").replace(" ", "-")
            try:
                if name in editors.EDITORS:
                    version, verdict = editors.drive(name, clients, work)
                else:
                    version, verdict = agents.drive(name, programs, work)
            except Exception as error:  # a client may do anything
                version, verdict = "", f"no: {error!r}"
            failed += not verdict.startswith(("yes", "not installed"))
            print(f"{name:24}{version[:36]:38}{verdict}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
