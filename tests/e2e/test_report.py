"""``redraft doctor --report`` after a session with secret code, of which even the log has some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .client import Driver, command, inline, profile, status

MARK = "quokka"
TEXT = f'def {MARK}_total(prices):\n    """{MARK}."""\n    return \n'
BROKEN = f"""\
2026-01-02 03:04:05,678 99 ERROR lsp_server.engine.scheduler: {MARK} failed
Traceback (most recent call last):
  File "/home/{MARK}/site-packages/lsp_server/shared/errors.py", line 12, in decode
    {MARK} = text
  File "/home/{MARK}/accel/{MARK}.py", line 3, in {MARK}
    {MARK}()
ValueError: {MARK}
{MARK}: int = 3
KeyError: {MARK}
2026-01-02 03:04:06,000 99 INFO lsp_server.editor.server: {MARK}
"""


def test_a_report_holds_no_source_code_and_no_name_of_a_folder(
    connect: Callable[..., Driver], environment: dict[str, str], tmp_path: Path
) -> None:
    work = tmp_path / f"{MARK}_folder"
    work.mkdir()
    (work / f"{MARK}.py").write_text(TEXT)
    (work / ".env").write_text(f"{MARK.upper()}_TOKEN={MARK}\n")
    driver = connect(initialize=False)
    driver.initialize(profile("neovim"), work, settings={"log": {"sourceText": True}})
    uri = (work / f"{MARK}.py").as_uri()
    driver.open(uri, TEXT)
    driver.request("textDocument/inlineCompletion", inline(uri, 2, 11, 1), 120)
    selected = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
    edit = {"textDocument": {"uri": uri}, "range": selected, "instruction": f"explain {MARK}"}
    driver.answer(driver.start("redraft/edit", edit), 120)
    logs = Path(status(environment)["log"])
    with (logs / "engine.log").open("a") as log:
        log.write(BROKEN)
    report = command(environment, "doctor", "--report")
    assert report.returncode == 0, report.stderr
    assert MARK not in report.stdout.lower()
    assert str(tmp_path) not in report.stdout
    assert environment["HOME"] not in report.stdout
    for line in (
        "engine.log: 2026-01-02 03:04:05,678 ERROR lsp_server.engine.scheduler",
        "  lsp_server/shared/errors.py:12",
        "  ValueError",
    ):
        assert f"\n{line}\n" in report.stdout
    assert "KeyError" not in report.stdout
    assert "\nengine: " in report.stdout
    assert ", 1 files, " in report.stdout
