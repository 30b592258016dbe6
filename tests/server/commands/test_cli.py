"""The command line: every command explains itself, wrong use is told in one line."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from text_cases import data_cases

from lsp_server.commands.cli import complete as complete_command
from lsp_server.commands.cli.argument_parser import COMMANDS, Command
from lsp_server.commands.cli.main import main


def leaves(level: dict[str, Command], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in level.items():
        words = (*above, name)
        yield from leaves(command.children, words)
        if command.module:
            yield words


def test_it_starts_as_copilots_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsp_server.editor.daemon.front.serve", lambda: 7)
    assert main(["--stdio"]) == main(["serve", "--stdio"]) == 7


@pytest.mark.parametrize("words", list(leaves(COMMANDS)), ids=" ".join)
def test_every_command_explains_itself(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: redraft {' '.join(words)}")


@pytest.mark.parametrize("words", [["--help"], ["bench", "--help"], ["corpus", "--help"]])
def test_groups_list_their_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    level = COMMANDS if len(words) == 1 else COMMANDS[words[0]].children
    output = capsys.readouterr().out
    assert [name for name in level if name not in output] == []


def test_without_a_command_all_are_listed_and_the_first_step_is_on_top(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    output = capsys.readouterr().out
    assert [name for name in COMMANDS if f" {name} " not in output.replace("\n", " ")] == []
    assert "COMMAND\n    setup     the first step: find, try and choose a model" in output


@pytest.mark.parametrize(
    "words",
    [["compleet"], ["corpus", "speed"], ["doctor", "--loud"], ["serve", "--x"]],
    ids=" ".join,
)
def test_wrong_use_is_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: redraft" in capsys.readouterr().err


@data_cases()
def test_errors_of_the_world_are_one_line(words: list[str], told: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "lsp_server", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.strip().splitlines()[-1].startswith("redraft: ")
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_complete_refuses_a_position_outside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text("x = 1\n", encoding="utf-8")
    for line, character in ((3, 1), (7, 1), (0, 1), (-1, 1), (1, 0), (1, -1)):
        ended = subprocess.run(
            [sys.executable, "-m", "lsp_server", "complete", str(path), f"--line={line}",
             f"--character={character}"],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert ended.returncode == 1
        assert "outside of" in ended.stderr


@data_cases("command")
def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    path = tmp_path / "gone.py"
    assert main([*command, str(path)]) == 1
    told = capsys.readouterr().err
    assert told == f"redraft: {path} cannot be read (No such file or directory)\n"


def test_complete_says_of_an_empty_file_that_it_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.py"
    path.write_bytes(b"")
    assert main(["complete", str(path), "--line", "1", "--character", "1"]) == 1
    assert capsys.readouterr().err == f"redraft: {path} is empty; write the first words\n"


def test_complete_takes_lone_carriage_returns_as_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_bytes(b"def f(x):\r    return x\r\ny = f(\r")
    arguments = ["complete", str(path), "--line", "3", "--character", "7"]
    parser = argparse.ArgumentParser()
    complete_command.add_arguments(parser)
    job = complete_command._job(parser.parse_args(arguments[1:]), path, tmp_path)
    assert job.prefix == "def f(x):\n    return x\ny = f("
    assert job.suffix == "\n"


@pytest.mark.parametrize("name", [".env", "notes.py"])
def test_complete_reads_no_file_with_secrets(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text("key = 'ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z0K'\n")
    assert main(["complete", str(path), "--line", "1", "--character", "1"]) == 1
    assert "may hold secrets" in capsys.readouterr().err


def test_a_command_that_is_stopped_while_modules_are_loaded_ends_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopped:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "lsp_server.commands.cli.argument_parser":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "lsp_server.commands.cli.argument_parser")
    monkeypatch.setattr(sys, "meta_path", [Stopped(), *sys.meta_path])
    assert main(["models"]) == 130
    assert capsys.readouterr().err == ""
