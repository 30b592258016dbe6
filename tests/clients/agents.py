"""Coding agents write a file by a tool call of a stand-in model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.clients.stand_in import FILE, KEY, WRITTEN, StandIn

PORT = 8217
TASK = "Write a file with a greeting."
SECONDS = 150


def _opencode(folder: Path, url: str) -> list[str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"redraft": {"tool_call": True}},
    }
    settings = {"provider": {"redraft": provider}, "model": "redraft/redraft"}
    allowed = {"permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"}}
    (folder / "opencode.json").write_text(json.dumps({**settings, **allowed, "autoupdate": False}))
    return ["env", "-u", "OPENAI_API_KEY", "opencode", "run", "-m", "redraft/redraft", TASK]


def _qwen(_folder: Path, _url: str) -> list[str]:
    return ["qwen", "--auth-type", "openai", "--yolo", "-p", TASK]


def _continue(folder: Path, url: str) -> list[str]:
    file = folder.parent / "continue.yaml"
    file.write_text(
        "name: Redraft\nversion: 0.0.1\nschema: v1\n"
        "models:\n  - name: redraft\n    provider: openai\n"
        f"    model: redraft\n    apiBase: {url}/v1\n    apiKey: {KEY}\n"
        "    roles: [chat, edit]\n    capabilities: [tool_use]\n"
    )
    return ["cn", "--config", str(file), "--auto", "-p", TASK]


AGENTS = {"opencode": _opencode, "qwen": _qwen, "cn": _continue}


def drive(name: str, programs: Path, work: Path) -> tuple[str, str]:
    """Return the version and the verdict of an agent; ``programs``: the folder of its program."""
    shutil.rmtree(work, ignore_errors=True)
    folder, home = work / "project", work / "home"
    for made in (folder, home):
        made.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    environment |= {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "CI": "1"}
    stand_in = StandIn(folder, PORT)
    environment |= {"OPENAI_BASE_URL": f"{stand_in.url}/v1", "OPENAI_API_KEY": KEY}
    environment |= {"OPENAI_MODEL": "redraft", "PWD": str(folder)}
    try:
        command = AGENTS[name](folder, stand_in.url)
        asked = {"capture_output": True, "text": True, "env": environment, "cwd": folder}
        program = [part for part in command if part in AGENTS][:1]
        version = subprocess.run([*program, "--version"], timeout=60, check=False, **asked)  # type: ignore[call-overload]
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
    verdict = "yes: a tool call wrote the file" if is_written else f"no: {output}"
    return told[-1] if told else "", f"{verdict} ({len(stand_in.engine.jobs)} requests)"
