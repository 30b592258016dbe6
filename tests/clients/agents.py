"""Coding agents write a file by a tool call of a stand-in model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.clients.stand_in import FILE, KEY, WRITTEN, StandIn, recipe

PORT = 8217
TASK = "Write a file with a greeting."
SECONDS = 150


def _opencode(folder: Path, url: str) -> list[str]:
    allowed = {"permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"}}
    settings = {**json.loads(recipe("opencode", url)), **allowed, "autoupdate": False}
    (folder / "opencode.json").write_text(json.dumps(settings))
    return ["opencode", "run", TASK]


def _qwen(_folder: Path, url: str) -> list[str]:
    return ["bash", "-c", f"{recipe('qwen', url)} --auth-type openai --yolo -p '{TASK}'"]


def _continue(folder: Path, url: str) -> list[str]:
    file = folder.parent / "home" / ".continue" / "config.yaml"
    file.parent.mkdir()
    file.write_text(recipe("cn", url))
    return ["cn", "--config", str(file), "--auto", "-p", TASK]


def _codex(folder: Path, url: str) -> list[str]:
    (folder.parent / "home" / ".codex").mkdir()
    (folder.parent / "home" / ".codex" / "config.toml").write_text(recipe("codex", url))
    sandbox = "--dangerously-bypass-approvals-and-sandbox"
    return ["env", f"REDRAFT_KEY={KEY}", "codex", "exec", "--skip-git-repo-check", sandbox, TASK]


def _aider(_folder: Path, url: str) -> list[str]:
    quiet = "--no-check-update --no-show-model-warnings --no-analytics --no-pretty"
    asked = f"--yes-always --no-auto-commits --edit-format diff --message '{TASK}'"
    return ["bash", "-c", f"{recipe('aider', url)} {quiet} {asked}"]


AGENTS = {"opencode": _opencode, "qwen": _qwen, "cn": _continue, "codex": _codex, "aider": _aider}


def drive(name: str, clients: Path, work: Path) -> tuple[str, str]:
    """Return the version and the verdict of an agent of the folder ``clients``."""
    programs = f"{clients / 'npm/node_modules/.bin'}:{clients / 'pip/aider-chat/bin'}"
    shutil.rmtree(work, ignore_errors=True)
    folder, home = work / "project", work / "home"
    for made in (folder, home):
        made.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    environment |= {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "CI": "1"}
    stand_in = StandIn(folder, PORT)
    environment |= {"PWD": str(folder)}
    try:
        command = AGENTS[name](folder, stand_in.url)
        asked = {"capture_output": True, "text": True, "env": environment, "cwd": folder}
        version = subprocess.run([name, "--version"], timeout=60, check=False, **asked)  # type: ignore[call-overload]
        ended = subprocess.run(
            command,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
            **asked,  # type: ignore[call-overload]
        )
        output = " ".join((ended.stdout + ended.stderr).split())[-300:]
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"no: {error}"
    finally:
        stand_in.end()
    file = folder / FILE
    is_written = file.exists() and file.read_text() == WRITTEN
    told = version.stdout.strip().splitlines()
    verdict = "yes: wrote the file" if is_written else f"no: {output}"
    return told[-1] if told else "", f"{verdict} ({len(stand_in.engine.jobs)} requests)"
