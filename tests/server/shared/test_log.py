"""The log: private, rotated, and without source text."""

from __future__ import annotations

import logging
import stat
import subprocess
import sys
from pathlib import Path

from lsp_server.shared.processes.log import redacted

SCRIPT = """
import logging, sys
from lsp_server.shared.processes import log
log.MAX_BYTES = 2000
print(log.start_log("test", "info"))
logging.getLogger("pygls.protocol").error("SECRET SOURCE")
logging.getLogger("lsp_server.x").debug("DETAIL")
for number in range(500):
    logging.getLogger("lsp_server.x").info("line %s", number)
"""


def test_logs_rotate_belong_to_the_user_and_hold_no_messages_of_pygls(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"REDRAFT_LOG_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    files = sorted(tmp_path.iterdir())
    assert Path(done.stdout.strip()) in files
    assert len(files) == 4
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
        assert file.stat().st_size <= 2200
        text = file.read_text()
        assert "SECRET" not in text
        assert "DETAIL" not in text


def test_source_text_is_shown_only_when_asked_for() -> None:
    assert redacted("password = 1") == "<12 characters>"
    assert redacted("x", show=True) == "'x'"
    assert logging.getLogger("lsp_server") is not None
