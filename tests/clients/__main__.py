"""Drives what is installed in a folder and prints a table: ``python -m tests.clients FOLDER [NAME
...]``. ``setup.sh FOLDER`` fills it."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.clients import agents, editors, programs


def main(clients: Path, names: list[str]) -> int:
    """Drive the clients of ``names``, all by default; 1 if one fails or loses text."""
    failed, began = 0, time.monotonic()
    drivers = {
        **dict.fromkeys(editors.EDITORS, editors.drive),
        **dict.fromkeys(agents.AGENTS, agents.drive),
        **dict.fromkeys(programs.PROGRAMS, programs.drive),
    }
    with tempfile.TemporaryDirectory(
        prefix="redraft-clients-", ignore_cleanup_errors=True
    ) as folder:
        for name in names or drivers:
            work = Path(folder) / name.replace("/", "-").replace(" ", "-")
            try:
                version, verdict = drivers[name](name, clients, work)
            except Exception as error:  # a client may do anything
                version, verdict = "", f"no: {error!r}"
            failed += not verdict.startswith(("yes", "not installed"))
            print(f"{name:24}{version[:36]:38}{verdict}", flush=True)
    print(f"{time.monotonic() - began:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
