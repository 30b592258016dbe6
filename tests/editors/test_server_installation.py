"""The installer that extensions carry: real uv, pipx and venv, a folder as registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from installed import ROOT, Installed
from packed_server import PackedServer

pytestmark = pytest.mark.editors


@pytest.fixture
def packed(tmp_path: Path) -> PackedServer:
    """A small server of version 0.1.0."""
    return PackedServer(tmp_path / "packed")


def run(
    packed: PackedServer, installed: Installed, *arguments: str, cwd: Path | None = None,
    **surroundings: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run the installer with uv and pipx on PATH, as an editor does; from a file where the kernel
    gives no network."""
    path = f"{installed.folder / 'python/bin'}:/usr/bin:/bin"
    environment = {**os.environ, "PATH": path, **packed.surroundings, **surroundings}
    without_network = ["unshare", "--map-root-user", "--net"] if "--from" in arguments else []
    return subprocess.run(
        [*without_network, sys.executable, "-I", str(packed.folder / "install.py"), *arguments],
        env=environment, cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def install(
    packed: PackedServer, installed: Installed, folder: Path, *arguments: str, **surroundings: str
) -> dict[str, Any]:
    """What was chosen once the installer was done."""
    result = run(packed, installed, "install", "--folder", str(folder), *arguments, **surroundings)
    assert result.returncode == 0, result.stdout + result.stderr
    return current(folder)


def current(folder: Path) -> dict[str, Any]:
    """What is chosen in a folder of environments."""
    chosen: dict[str, Any] = json.loads((folder / "current.json").read_text(encoding="utf-8"))
    return chosen


def version_of(command: str) -> str:
    """What a command says of itself."""
    result = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return result.stdout.strip()


@pytest.mark.parametrize("way", ["uv", "venv", "pipx"])
def test_the_server_and_what_it_needs_are_installed(
    packed: PackedServer, installed: Installed, tmp_path: Path, way: str
) -> None:
    folder = tmp_path / "private environments"
    chosen = install(packed, installed, folder, "--by", way)
    assert chosen["by"] == way
    assert chosen["version"] == "0.1.0"
    assert version_of(chosen["command"]) == "redraft 0.1.0"
    assert Path(chosen["command"]).is_relative_to(folder)
    assert list(folder.rglob("tiny_need.py"))


def test_uv_is_taken_where_it_is_found(
    packed: PackedServer, installed: Installed, tmp_path: Path
) -> None:
    assert install(packed, installed, tmp_path / "one")["by"] == "uv"
    assert install(packed, installed, tmp_path / "other", PATH="/usr/bin:/bin")["by"] == "venv"


@pytest.mark.parametrize("way", ["uv", "venv"])
def test_another_file_than_the_pinned_one_is_refused(
    packed: PackedServer, installed: Installed, tmp_path: Path, way: str
) -> None:
    folder = tmp_path / "server"
    before = install(packed, installed, folder, "--by", way)
    packed.write_pins("0" * 64)
    result = run(packed, installed, "install", "--folder", str(folder), "--by", way)
    assert result.returncode == 1
    assert "was not installed" in result.stderr
    assert "hash" in (result.stdout + result.stderr).lower()
    assert current(folder) == before
    assert version_of(before["command"]) == "redraft 0.1.0"
    assert len([one for one in folder.iterdir() if one.is_dir()]) == 1


def test_an_upgrade_leaves_the_last_one_for_a_server_that_still_runs(
    installed: Installed, tmp_path: Path
) -> None:
    folder = tmp_path / "server"
    commands = []
    for version in ("0.1.0", "0.2.0", "0.3.0"):
        packed = PackedServer(tmp_path / version, version=version)
        commands.append(install(packed, installed, folder)["command"])
    assert [Path(one).exists() for one in commands] == [False, True, True]
    assert version_of(current(folder)["command"]) == "redraft 0.3.0"


def test_a_server_that_does_not_answer_is_not_chosen(installed: Installed, tmp_path: Path) -> None:
    packed = PackedServer(tmp_path / "packed")
    told = json.loads((packed.folder / "server.json").read_text())
    (packed.folder / "server.json").write_text(json.dumps({**told, "version": "0.2.0"}))
    result = run(packed, installed, "install", "--folder", str(tmp_path / "server"))
    assert result.returncode == 1
    assert "says 'redraft 0.1.0' and not redraft 0.2.0" in result.stderr
    assert not list((tmp_path / "server").iterdir())


def test_a_file_serves_where_there_is_no_network(
    packed: PackedServer, installed: Installed, tmp_path: Path
) -> None:
    file = tmp_path / "offline.zip"
    result = run(packed, installed, "download", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
    for wheel in packed.registry.iterdir():
        wheel.unlink()
    for way in ("uv", "venv", "pipx"):
        chosen = install(packed, installed, tmp_path / way, "--by", way, "--from", str(file))
        assert version_of(chosen["command"]) == "redraft 0.1.0"
        assert list((tmp_path / way).rglob("tiny_need.py"))
    (tmp_path / "notes.txt").write_text("no wheels")
    result = run(packed, installed, "install", "--folder", str(tmp_path / "other"),
                 "--from", str(tmp_path / "notes.txt"))  # fmt: skip
    assert result.returncode == 1
    assert "install.py download" in result.stderr


def test_nothing_in_the_folder_that_is_open_leads_an_installation(
    packed: PackedServer, installed: Installed, tmp_path: Path
) -> None:
    """A workspace may hold commands, settings of uv and pip, and modules of Python's names."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    evidence = workspace / "ran"
    for name in ("uv", "pipx", "python3"):
        (workspace / name).write_text(f"#!/bin/sh\ntouch '{evidence}'\n")
        (workspace / name).chmod(0o755)
    for name in ("venv.py", "json.py", "sitecustomize.py"):
        (workspace / name).write_text(f"open({str(evidence)!r}, 'w')\n")
    (workspace / "uv.toml").write_text('index-url = "http://127.0.0.1:9/simple"\n[broken\n')
    (workspace / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/simple\n")
    for way in ("uv", "venv"):
        path = f".:{installed.folder / 'python/bin'}:/usr/bin:/bin"
        result = run(
            packed, installed, "install", "--folder", str(tmp_path / way), "--by", way,
            cwd=workspace, PATH=path, PYTHONPATH=str(workspace), VIRTUAL_ENV=str(workspace),
        )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
    assert not evidence.exists()


def test_the_real_package_says_what_it_is(tmp_path: Path, installed: Installed) -> None:
    """The wheel is whole, says the server's version, and everything that it needs has a hash."""
    import zipfile

    with zipfile.ZipFile(installed.vsix) as archive:
        names = {Path(one).name: one for one in archive.namelist() if "/server/" in one}
        told = json.loads(archive.read(names["server.json"]))
        archive.extract(names[told["wheel"]], tmp_path)
        pins = archive.read(names["requirements.txt"]).decode()
    with zipfile.ZipFile(tmp_path / names[told["wheel"]]) as wheel:
        packed = set(wheel.namelist())
    sources = {
        one.relative_to(ROOT).as_posix()
        for part in ("accel", "repo_index", "lsp_server", "operating_system")
        for one in (ROOT / part).rglob("*.py")
    }
    assert sources <= packed
    assert f'VERSION = "{told["version"]}"' in (ROOT / "lsp_server/shared/version.py").read_text()
    entries = [one for one in pins.replace("\\\n", " ").splitlines() if one.strip()]
    assert len(entries) > 30
    assert all("==" in one and "--hash=sha256:" in one for one in entries)
    assert "redraft" not in {one.split("==")[0] for one in entries}
