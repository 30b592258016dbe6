"""``redraft apply``: a diff, a file that is written, and refusals with their lines."""

from __future__ import annotations

import io
import json
import stat
import sys
from types import SimpleNamespace

import pytest
from small_model import SMALL_MODEL

from lsp_server.commands.cli import apply as apply_command
from lsp_server.commands.cli.main import main
from lsp_server.shared.contract.jobs import unchanged

FILE = """\
def area(w, h):
    return w * h


def edge(w, h):
    return w + h


print(edge(1, 2))
"""
SNIPPET = (
    "# ... existing code ...\ndef edge(w, h):\n    return 2 * (w + h)\n\n\nprint(edge(1, 2))\n"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shapes.py"
    path.write_text(FILE)
    path.chmod(0o640)
    (tmp_path / "snippet").write_text(SNIPPET)
    return path


def apply(file, *options: str) -> int:
    return main(["apply", str(file), "--snippet", str(file.parent / "snippet"), *options])


def test_a_diff_is_printed_and_the_file_left_alone(file, capsys):
    assert apply(file) == 0
    shown = capsys.readouterr().out
    assert "-    return w + h\n+    return 2 * (w + h)\n" in shown
    assert file.read_text() == FILE


def test_the_file_is_written_with_its_mode(file, capsys):
    assert apply(file, "--write", "--json") == 0
    wanted = FILE.replace("w + h", "2 * (w + h)")
    assert file.read_text() == wanted
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    told = json.loads(capsys.readouterr().out)
    assert told["diff"].startswith("--- a/")
    assert (told["text"], told["how"], told["written"]) == (wanted, "exact", True)
    assert sorted(one.name for one in file.parent.iterdir()) == ["shapes.py", "snippet"]


def test_differences_are_put_in(file, capsys):
    old, new = "    return w + h\n", "    return 2 * (w + h)\n"
    for text in (
        f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n",
        f"--- a/shapes.py\n+++ b/shapes.py\n@@ -6,1 +6,1 @@\n-{old}+{new}",
    ):
        (file.parent / "snippet").write_text(text)
        assert apply(file, "--json") == 0
        assert json.loads(capsys.readouterr().out)["text"] == FILE.replace(old, new)


def test_a_difference_of_another_file_is_refused(file, capsys):
    text = "--- a/lines.py\n+++ b/lines.py\n@@ -6,1 +6,1 @@\n-    return w + h\n+    return w\n"
    (file.parent / "snippet").write_text(text)
    assert apply(file, "--write") == 1
    assert "that is of lines.py, not of shapes.py" in capsys.readouterr().err
    assert file.read_text() == FILE


def test_the_snippet_comes_from_standard_input(file, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SNIPPET.encode())))
    assert main(["apply", str(file), "--snippet", "-"]) == 0
    assert "+    return 2 * (w + h)" in capsys.readouterr().out


def test_a_second_time_nothing_is_written(file, capsys):
    assert apply(file, "--write") == 0
    capsys.readouterr()
    assert apply(file, "--write", "--json") == 0
    assert json.loads(capsys.readouterr().out)["written"] is False


def test_a_refusal_has_its_places(file, capsys):
    file.write_text("a = 1\nb = 2\n" * 3)
    (file.parent / "snippet").write_text("...\na = 1\nc = 3\nb = 2\n...\n")
    assert apply(file, "--write", "--json") == 1
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    told = json.loads(shown.out)
    assert [place["first_line"] for place in told["places"]] == [1, 3, 5]
    assert told["refused"] in shown.err
    assert file.read_text() == "a = 1\nb = 2\n" * 3


TWICE = "a = 1\nb = 2\nd = 4\na = 1\nb = 2\n"
FITS_TWICE = "...\na = 1\nc = 3\nb = 2\n...\n"


@pytest.fixture
def model_says(monkeypatch):
    """Has the model write something; the list holds what it was asked."""
    asked = []

    def says(text: str):
        def write(_service, job):
            asked.append(job)
            return unchanged(text)

        monkeypatch.setattr("lsp_server.engine.service.EngineService.write", write)
        return asked

    return says


@pytest.mark.parametrize("options", [["--no-model"], []], ids=["no model", "none is chosen"])
def test_no_model_is_asked(file, capsys, model_says, options, bare_home):
    asked = model_says("never")
    given = ["--model", "any", *options] if options else []
    assert apply(file, *given) == 0
    file.write_text(TWICE)
    (file.parent / "snippet").write_text(FITS_TWICE)
    assert apply(file, *given) == 1
    assert "fit several places" in capsys.readouterr().err
    assert asked == []


def test_what_holds_secrets_is_shown_to_no_model(file, capsys, model_says):
    asked = model_says("never")
    secret = file.with_name(".env")
    secret.write_text(TWICE)
    (file.parent / "snippet").write_text(FITS_TWICE)
    assert apply(secret, "--model", "any") == 1
    assert asked == []


def test_a_model_that_fails_is_a_refusal(file, capsys):
    file.write_text(TWICE)
    (file.parent / "snippet").write_text(FITS_TWICE)
    assert apply(file, "--write", "--model", str(file.parent / "FastApply-1.5B")) == 1
    shown = capsys.readouterr().err
    assert "fit several places" in shown
    assert "the model was asked, and failed" in shown
    assert file.read_text() == TWICE


def test_a_real_model_chooses_or_the_snippet_is_refused(file, capsys):
    file.write_text(TWICE)
    (file.parent / "snippet").write_text(FITS_TWICE)
    code = apply(file, "--write", "--json", "--model", str(SMALL_MODEL))
    told = json.loads(capsys.readouterr().out)
    readings = [TWICE.replace("b = 2\nd", "c = 3\nb = 2\nd"), TWICE[:-6] + "c = 3\nb = 2\n"]
    if code:
        assert "fit several places" in told["refused"]
        assert file.read_text() == TWICE
    else:
        assert told["how"] == "model"
        assert file.read_text() in readings


def test_a_file_that_changed_meanwhile_is_not_written(file, capsys, monkeypatch):
    merge = apply_command.apply_text

    def slow(*given):
        file.write_text(FILE + "# typed meanwhile\n")
        return merge(*given)

    monkeypatch.setattr(apply_command, "apply_text", slow)
    assert apply(file, "--write") == 1
    assert "changed while" in capsys.readouterr().err
    assert file.read_text() == FILE + "# typed meanwhile\n"


def test_files_that_are_no_text_are_refused(file, capsys):
    file.write_bytes(b"\xff\xfe\x00")
    assert apply(file) == 1
    assert "is not UTF-8 text" in capsys.readouterr().err
