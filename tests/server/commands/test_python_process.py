"""Nothing of a folder that a command is started in, or that it works on, is ever run as a module,
and the installation is found wherever it is."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from planted_modules import CODE, all_names, installed_command, names_run, plant
from python_environments import REPOSITORY
from small_model import choose_small_model

from accel.native import python_process
from accel.native.python_process import installation_folders, python_command
from lsp_server.commands.cli.argument_parser import COMMANDS

START_S = 240


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own; the compiled code is this one's."""
    made = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REDRAFT_", "XDG_"))
    }
    home = tmp_path / "home"
    home.mkdir()
    for name in ("DATA_HOME", "STATE_HOME", "CONFIG_HOME", "RUNTIME_DIR"):
        made[f"XDG_{name}"] = str(home / name.lower())
        Path(made[f"XDG_{name}"]).mkdir(mode=0o700)
    made |= {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"], "REDRAFT_IDLE_EXIT_S": "1"}
    (home / "state_home" / "redraft").mkdir()
    (home / "state_home" / "redraft" / "setup.json").write_text('{"answer": "in a test"}')
    choose_small_model(home / "config_home")
    return {**made, "OMP_NUM_THREADS": "1"}


class Play:
    """Commands in a folder full of modules."""

    def __init__(self, tmp_path: Path, environment: dict[str, str]) -> None:
        self.ran = tmp_path / "ran"
        self.folder = plant(tmp_path / "workspace", all_names(), self.ran)
        self.environment = environment
        self.command = installed_command(tmp_path)

    def run(self, *words: str, code: int = 0, **more: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            [self.command, *words], cwd=self.folder, env={**self.environment, **more},
            capture_output=True, text=True, timeout=START_S, check=False,
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout[-500:], done.stderr[-2000:])
        assert names_run(self.ran) == [], words
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.command, *words], cwd=self.folder, env=self.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture
def play(tmp_path: Path, environment: dict[str, str]) -> Play:
    return Play(tmp_path, environment)


def test_what_is_planted_is_run_by_a_process_that_is_not_isolated(play: Play) -> None:
    old_way = [sys.executable, "-m", "accel.text.template_process"]
    subprocess.run(old_way, cwd=play.folder, capture_output=True, timeout=60, check=False)
    assert names_run(play.ran)
    program = "import numpy, queue"
    subprocess.run([sys.executable, "-c", program], cwd=play.folder, timeout=60, check=False)
    assert {"numpy", "queue"} <= set(names_run(play.ran))


def commands(level: dict[str, Any] = COMMANDS) -> list[tuple[str, ...]]:
    """The words of every command."""
    found: list[tuple[str, ...]] = []
    for name, command in level.items():
        below = commands(command.children)
        found += [(name, *words) for words in below] if below else [(name,)]
    return found


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_command_loads_a_module_of_the_folder_it_is_started_in(play: Play) -> None:
    for words in commands():
        assert "usage: redraft" in play.run(*words, "--help")


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_commands_at_work_run_nothing_of_the_folder(play: Play) -> None:
    place = ("code.txt", "--line", "4", "--character", "19")
    assert play.run("complete", *place, "--threads", "1")
    play.run("edit", "code.txt", "--lines", "1:4", "--instruction", "rename prices to items")
    play.run("index", ".")
    play.run("models", "--json")
    play.run("status", code=1)
    play.run("doctor")
    play.run("keys", "add", "ann", "--keys", "keys.txt")
    play.run("stop")


@pytest.mark.timeout(600)
def test_an_editors_server_runs_nothing_of_the_folder(play: Play) -> None:
    """The front, the daemon, the indexer, the engine and the list of models."""
    front = play.start("serve")
    assert front.stdin is not None
    assert front.stdout is not None
    answers: dict[Any, Any] = {}
    arrived = threading.Condition()

    def read() -> None:
        assert front.stdout is not None
        while head := front.stdout.readline():
            front.stdout.readline()
            message = json.loads(front.stdout.read(int(head.split(b":")[1])))
            with arrived:
                answers[message.get("id") if "method" not in message else None] = message
                arrived.notify_all()

    def send(method: str, params: Any, number: int | None = None) -> Any:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        body = json.dumps(told if number is None else {**told, "id": number}).encode()
        front.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        front.stdin.flush()
        if number is None:
            return None
        with arrived:
            assert arrived.wait_for(lambda: number in answers, START_S)
        return answers[number]["result"]

    threading.Thread(target=read, daemon=True).start()
    root = play.folder.as_uri()
    send("initialize", {"processId": None, "rootUri": root, "capabilities": {},
         "workspaceFolders": [{"uri": root, "name": "w"}]}, 1)  # fmt: skip
    send("initialized", {})
    uri = f"{root}/code.py"
    opened = {"uri": uri, "languageId": "python", "version": 1, "text": CODE}
    send("textDocument/didOpen", {"textDocument": opened})
    place = {"textDocument": {"uri": uri}, "position": {"line": 3, "character": 18}}
    number = 2
    while not send("textDocument/inlineCompletion", {**place, "context": {"triggerKind": 1}},
                   number)["items"]:  # fmt: skip
        number += 1
        assert number < 2000
        threading.Event().wait(0.1)
    listed = send("redraft/models", {}, number + 1)
    assert listed["models"] is not None
    send("shutdown", None, number + 2)
    send("exit", None)
    front.stdin.close()
    assert front.wait(60) == 0
    play.run("stop")


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_teams_server_runs_nothing_of_the_folder(play: Play) -> None:
    keys = play.folder / "keys.txt"
    keys.write_text("ann key-of-ann\n")
    keys.chmod(0o600)
    server = play.start("serve-http", "--keys", "keys.txt", "--port", "0", "--threads", "1")
    try:
        lines: queue.Queue[bytes] = queue.Queue()
        assert server.stdout is not None
        threading.Thread(target=lambda: lines.put(server.stdout.readline()), daemon=True).start()
        url = json.loads(lines.get(timeout=START_S))["url"]
        body = json.dumps({"model": "x", "prompt": CODE, "max_tokens": 4}).encode()
        request = urllib.request.Request(
            f"{url}/v1/completions", body,
            {"Authorization": "Bearer key-of-ann", "Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            assert json.load(answer)["choices"]
    finally:
        server.terminate()
        server.wait(60)
    assert names_run(play.ran) == []


STARTS_OTHERS = """
import json, os, subprocess, sys
names = ["accel", "numpy", "torch"]
found = subprocess.run(
    [sys.executable, "-c", "import importlib.util as u; print([u.find_spec(n) is not None for n in "
     + repr(names) + "])"], capture_output=True, text=True)
print(json.dumps({"path": os.environ.get("PYTHONPATH"), "found": found.stdout}))
"""
"""A process of ours that starts Python as libraries do, as Ray does."""


def loaded_at_start() -> set[str]:
    """What Python and the script that pip writes import before any of our code runs."""
    program = "import re, sys; print(*{name.split('.')[0] for name in sys.modules})"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    # An editable installation has Python load pathlib, which tries what other systems have.
    return {*ran.stdout.split(), "sitecustomize", "usercustomize", "nt", "_winapi"}


@pytest.mark.parametrize(
    "where",
    [
        "{folder}/sub:{folder}:",
        *(
            pytest.param(where, marks=pytest.mark.long)
            for where in ("{folder}", "", ".", ":{folder}")
        ),
    ],
)
@pytest.mark.slow
def test_a_folder_on_pythonpath_gives_no_module(play: Play, where: str) -> None:
    for name in loaded_at_start() | {"lsp_server", "accel"}:
        (play.folder / f"{name}.py").unlink(missing_ok=True)
    given = where.format(folder=play.folder)
    play.run("models", "--json", PYTHONPATH=given)
    play.run("index", ".", PYTHONPATH=given)
    place = ("code.txt", "--line", "4", "--character", "19", "--threads", "1")
    assert play.run("complete", *place, PYTHONPATH=given)


def base_python() -> str:
    return getattr(sys, "_base_executable", sys.executable)


def packages() -> list[str]:
    """The folders that our packages and what they need are installed in."""
    return [str(REPOSITORY), *(one for one in installation_folders() if one != str(REPOSITORY))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("user site", marks=pytest.mark.long),
        pytest.param("PYTHONPATH", marks=pytest.mark.slow),
    ],
)
def test_an_installation_outside_of_pythons_own_folders_is_found(
    how: str, play: Play, tmp_path: Path
) -> None:
    python = base_python()
    play.command = installed_command(tmp_path, python)
    more = {"PYTHONPATH": ""}
    if how == "user site":
        more["PYTHONUSERBASE"] = str(tmp_path / "base")
        ask = "import site; print(site.getusersitepackages())"
        asked = subprocess.run(
            [python, "-c", ask], env={**play.environment, **more},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        site = Path(asked.stdout.strip())
        site.mkdir(parents=True)
        # As an installation for development: by a file of paths, which only ``site`` reads.
        (site / "redraft.pth").write_text("".join(f"{one}\n" for one in packages()))
    else:
        more["PYTHONPATH"] = os.pathsep.join(packages())
    play.environment |= more
    missing = {**play.environment, "PYTHONPATH": "", "PYTHONUSERBASE": str(tmp_path / "none")}
    # The control: without them nothing is found.
    failed = subprocess.run([play.command, "models"], env=missing, capture_output=True, check=False)
    assert b"No module named 'lsp_server'" in failed.stderr
    play.run("models", "--json")
    place = ("code.txt", "--line", "4", "--character", "19", "--threads", "1")
    assert play.run("complete", *place)
    test_an_editors_server_runs_nothing_of_the_folder(play)


def test_folders_without_packages_are_no_part_of_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "target" / "numpy-2.dist-info").mkdir(parents=True)
    (tmp_path / "a:b" / "numpy-2.dist-info").mkdir(parents=True)
    trusted = [str(tmp_path / "target"), str(tmp_path / "a:b")]
    monkeypatch.chdir(tmp_path / "target")
    monkeypatch.setattr(
        sys, "path", ["", ".", "relative", str(tmp_path / "project"), *trusted, "/no/such/folder"]
    )
    assert installation_folders() == [*trusted, str(REPOSITORY)]


def test_the_command_line_says_how_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    command = python_command("a.module", "one", "two")
    assert command[:2] == [sys.executable, "-I"]
    assert {"-u", "-B"} <= set(command)
    assert command[-3:] == ["a.module", "one", "two"]
    assert Path(command[-5]) == Path(python_process.__file__).with_name("isolated_start.py")


def test_processes_that_libraries_start_have_the_installation_and_no_more(
    play: Play, tmp_path: Path
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "starts.py").write_text(STARTS_OTHERS)
    command = python_command("starts")
    command[-2] += f"\n{package}"
    done = subprocess.run(
        command, cwd=tmp_path, env={**play.environment, "PYTHONPATH": str(play.folder)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert str(play.folder) not in told["path"].split(os.pathsep)
    assert told["found"] == "[True, True, True]\n"
    assert names_run(play.ran) == []
