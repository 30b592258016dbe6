"""What strangers wrote into names, headers and answers does not steer the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from text_cases import data_cases

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf
from hub_stand_in import Repository, served_repository

from lsp_server.commands.cli.argument_parser import run_command
from lsp_server.commands.cli.terminal import terminal, write_result
from lsp_server.models.manifest import read_manifest
from lsp_server.shared.printable import in_one_line, printable, say

STEERING = {
    "a title": "\x1b]0;owned\x07",
    "a cleared screen": "\x1b[2J\x1b[H",
    "a link": "\x1b]8;;http://x\x1b\\click\x1b]8;;\x1b\\",
    "a clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "an answer": "\x1b[6n\x1b[c",
    "one byte": "\x9b2J\x9d0;x\x9c",
    "a reset": "\x1bc",
    "backspaces": "good\b\b\b\bevil",
    "another line over this": "good\revil",
    "colours": "\x1b[8mhidden\x1b[0m",
    "deletion": "x\x7f\x7f",
    "null": "a\0b",
    "the other order": "\u202egpj.exe\u202c",
    "isolates": "\u2066x\u2069\u200f\u061c",
    "line separators": "a\u2028b\u2029c",
    "pages": "a\x0bb\x0cc",
    "an unfinished sequence": "\x1b[",
    "no text": "a\udc80b\udcff",
}


TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "B")


def steers(text: str) -> list[str]:
    """Characters that a terminal would obey."""
    return [one for one in text if one not in "\n\t" and _is_steering(one)]


def _is_steering(one: str) -> bool:
    return (
        unicodedata.category(one) in ("Cc", "Cs")
        or unicodedata.bidirectional(one) in TURNING
        or one in "\u200e\u200f\u061c"
    )


@pytest.mark.parametrize("text", STEERING.values(), ids=STEERING)
def test_what_steers_is_seen(text: str) -> None:
    assert steers(text)
    for shown in (printable(text), in_one_line(text)):
        assert steers(shown) == []
        assert len(shown) == len(text)
        shown.encode()
    assert in_one_line(text).isprintable()


def test_every_character_is_judged() -> None:
    whole = "".join(map(chr, range(sys.maxunicode + 1)))
    assert steers(printable(whole).replace("\r\n", "\n")) == []
    assert steers(in_one_line(whole)) == []


@data_cases("text")
def test_other_text_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("text", STEERING.values(), ids=STEERING)
def test_consoles_and_prints_show_it(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    say(text)
    console = terminal(force_terminal=False)
    console.print(text)
    console.print(Text(text, "bold"))
    table = Table("name")
    table.add_row(text)
    console.print(table)
    printed = capsys.readouterr().out
    assert steers(printed) == []
    printed.encode()


def test_rich_may_still_colour(capsys: pytest.CaptureFixture[str]) -> None:
    console = terminal(force_terminal=True, color_system="standard", highlight=False)
    console.print("[red]x[/] \x1b[2J", style="bold")
    assert capsys.readouterr().out == "\x1b[1m[red]x[/] ␛[2J\x1b[0m\n"


def test_a_result_is_exact_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    write_result("a\x1b[0m\r\nb\x0c")
    assert capsys.readouterr().out == "a\x1b[0m\r\nb\x0c"


# Commands


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path


def told(*words: str, **more: str) -> str:
    """What a command writes, on both streams."""
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server", *words],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        stdin=subprocess.DEVNULL,
        env=os.environ | more,
        timeout=110,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


EVIL = "".join(value for name, value in STEERING.items() if name not in ("null", "no text"))
AS_NAME = f"{EVIL}\nchosen for completion".replace("/", "")


def model(file: Path, **text: str) -> Path:
    """A model whose header says this of itself."""
    module = random_module("llama", tie_word_embeddings=True, hidden_size=64, intermediate_size=96)
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    metadata |= {f"general.{name}": value for name, value in text.items()}
    return write_gguf(file, metadata, gguf_tensors(module, "Q8_0"))


@pytest.mark.slow
def test_of_files_and_their_headers(home: Path) -> None:
    folder = home / "models"
    folder.mkdir()
    model(folder / "licence.gguf", license=EVIL, name=EVIL)
    model(folder / f"{AS_NAME[:60]}.gguf")
    (folder / f"{AS_NAME[-60:]}.gguf").write_bytes(b"no model")
    (folder / os.fsdecode(b"\xff\xfe.gguf")).write_bytes(b"GGUF")
    for words in (("models",), ("models", "--json"), ("setup",), ("setup", "--json")):
        assert steers(told(*words, "--folder", str(folder))) == [], words
    use = ("models", "--folder", str(folder), "use", f"{AS_NAME[:60]}.gguf")
    assert steers(told(*use)) == []
    assert steers(told("models")) == []
    assert steers(told("doctor")) == []
    listed = json.loads(told("models", "--json", "--folder", str(folder)))
    assert EVIL in {one["licence"] for one in listed["models"]}, "a program reads it as it is"


@pytest.mark.slow
def test_of_the_hub(home: Path) -> None:
    made = Repository({"small-Q8_0.gguf": b"GGUF" * 100}, licence=EVIL)
    with served_repository(made) as address:
        refused = told("models", "get", made.name, HF_ENDPOINT=address)
        assert "may limit use" in refused
        assert steers(refused) == []
        assert (
            steers(told("models", "get", made.name, "--accept-licence", HF_ENDPOINT=address)) == []
        )
        made.files = {f"{AS_NAME[:80]}.gguf": b"GGUF", "b.gguf": b"GGUF"}
        assert steers(told("models", "get", made.name, HF_ENDPOINT=address)) == []


def test_of_names_in_a_workspace(home: Path) -> None:
    work = home / "work"
    work.mkdir()
    evil = work / f"{AS_NAME[:60]}.py"
    evil.write_text("x = 1\n")
    assert steers(told("complete", str(evil), "--line", "99", "--character", "1")) == []
    assert steers(told("edit", str(evil), "--lines", "7:9", "--instruction", "x")) == []
    assert steers(told("complete", f"{evil}.gone", "--line", "1", "--character", "1")) == []


@pytest.mark.parametrize("text", STEERING.values(), ids=STEERING)
def test_an_error_is_told_in_one_line(
    text: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lsp_server.commands.cli import models
    from lsp_server.shared.errors import RedraftError

    def fail(_args: object) -> int:
        raise RedraftError(f"it says\n{text}")

    monkeypatch.setattr(models, "run", fail)
    assert run_command(["models"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("redraft: it says␊")
    assert printed.count("\n") == 1
    assert steers(printed) == []


def test_our_own_list_is_shown_as_it_stands() -> None:
    for one in read_manifest():
        assert in_one_line(f"{one.name} {one.purpose} {one.terms}").isprintable()
