"""A devcontainer as far as its processes go: the server runs in a home of its own, sees the files
of a container, and is within the limits of its groups."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from real_control_groups import limited_groups
from small_model import choose_small_model

from operating_system import folders

from .client import PYTHON, REPOSITORY, Driver, command, inline, profile, status
from .conftest import READY_S, SHAPES

pytestmark = pytest.mark.slow

DEVCONTAINER = REPOSITORY / ".devcontainer" / "devcontainer.json"
MANIFEST = REPOSITORY / "editor-clients" / "vscode" / "package.json"
GIGABYTE = 1 << 30
ENTER = """#!/bin/sh
{joins}
exec unshare --mount sh -c 'mount --bind "$0" /etc/hosts && mount -t tmpfs none /run &&
touch /run/.containerenv && exec "$@"' {hosts} {python} "$@"
"""


@pytest.fixture(scope="module")
def container() -> Any:
    text = DEVCONTAINER.read_text("utf-8")
    return json.loads(re.sub(r"(?m)^\s*//.*$", "", text))


def test_volumes_are_where_the_caches_lie(container: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/home/vscode")
    targets = {re.search("target=([^,]*)", one)[1] for one in container["mounts"]}  # type: ignore[index]
    assert targets == {str(folders.cache_folder()), str(folders.data_folder())}


def test_it_names_what_there_is(container: Any) -> None:
    manifest = json.loads(MANIFEST.read_text("utf-8"))
    assert manifest["extensionKind"] == ["workspace"], "it runs where the files are"
    editor = container["customizations"]["vscode"]
    assert editor["extensions"] == [f"{manifest['publisher']}.{manifest['name']}"]
    (setting,) = editor["settings"]
    sections = manifest["contributes"]["configuration"]
    (described,) = (one["properties"][setting] for one in sections if setting in one["properties"])
    assert described["scope"] == "machine"
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    assert container["postCreateCommand"] == "make .venv/.ready"
    assert "VENV := .venv\n" in makefile
    assert "READY := $(VENV)/.ready\n" in makefile
    assert "--add-host=host.docker.internal:host-gateway" in container["runArgs"]


def test_volumes_that_were_made_for_root_are_given_to_the_user(
    container: Any, tmp_path: Path
) -> None:
    for mount in container["mounts"]:
        target = re.search("target=/home/vscode/([^,]*)", mount)
        assert target is not None
        (tmp_path / "home" / target[1]).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin" / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    sudo.chmod(0o755)
    path = f"{sudo.parent}:{os.environ['PATH']}"
    environment = {"HOME": str(tmp_path / "home"), "PATH": path}
    subprocess.run(["sh", "-c", container["onCreateCommand"]], env=environment, check=True)
    owners = {place.stat().st_uid for place in (tmp_path / "home").rglob("*")}
    assert owners == {os.getuid()}


@pytest.fixture
def inside() -> Iterator[dict[str, str]]:
    """The environment of a process in a container of one processor and 1.5 GB."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root, for a view of files of its own")
    with (
        limited_groups(memory_bytes=3 * GIGABYTE // 2, processors=1) as files,
        tempfile.TemporaryDirectory(prefix="redraft-e2e-") as place,
    ):
        home, hosts, python = (Path(place, name) for name in ("home", "hosts", "python"))
        hosts.write_text("127.0.0.1 localhost\n172.17.0.1 host.docker.internal\n")
        joins = "\n".join(f"echo $$ > {file}" for file in files)
        python.write_text(ENTER.format(joins=joins, hosts=hosts, python=sys.executable))
        python.chmod(0o755)
        choose_small_model(home / ".config")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("REDRAFT_", "XDG_"))
        }
        more = {"REDRAFT_IDLE_EXIT_S": "20", "OMP_NUM_THREADS": "1", PYTHON: str(python)}
        made = {**kept, **more, "HOME": str(home)}
        yield made
        command(made, "stop")


@pytest.mark.timeout(2 * READY_S)
def test_the_first_suggestion_in_a_container(inside: dict[str, str], tmp_path: Path) -> None:
    home = Path(inside["HOME"])
    (tmp_path / "shapes.py").write_text(SHAPES)
    driver = Driver(inside)
    driver.initialize(profile("vscode"), tmp_path)
    uri = (tmp_path / "shapes.py").as_uri()
    text = SHAPES.partition("        total += ")[0] + "        total += "
    driver.open(uri, text)
    driver.wait_for_state("ready", timeout=READY_S)
    place = inline(uri, text.count("\n"), len("        total += "))
    answer = driver.request("textDocument/inlineCompletion", place, READY_S)
    assert answer["items"], driver.request("redraft/status", {})
    assert answer["items"][0]["insertText"].strip()
    shown = status(inside)
    assert shown["memory"]["budget_bytes"] <= 3 * GIGABYTE // 4
    (engine,) = shown["engines"]
    groups = Path(f"/proc/{engine['pid']}/cgroup").read_text()
    assert f"redraft-test-{os.getpid()}" in groups
    assert psutil.Process(engine["pid"]).environ()["HOME"] == str(home)
    kept = {place.relative_to(home).parts[:3] for place in home.rglob("*") if place.is_file()}
    assert (".cache", "redraft", "profiles") in kept
    # Nothing lies where a rebuilt container would lose it but choices and answers of the user.
    volumes = ((".cache", "redraft"), (".local", "share"), (".config", "redraft"))
    assert {parts[:2] for parts in kept} <= {*volumes, (".local", "state")}
    assert driver.close() == 0
