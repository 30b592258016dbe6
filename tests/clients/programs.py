"""Programs and libraries that ask a server over HTTP or MCP: each does what its users do most, and
prints what it was answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.clients.stand_in import DONE, KEY, StandIn, recipe
from tests.text_cases import data_beside

PORT, SECONDS = 8219, 100


@dataclass(frozen=True, slots=True)
class Program:
    """package: of pip or npm, whose version is told; code: that is run, Python or JavaScript;
    wanted: what it prints."""

    package: str
    code: str
    wanted: str = DONE


PROGRAMS = {name: Program(**fields) for name, fields in data_beside(__file__).items()}


def drive(name: str, clients: Path, work: Path) -> tuple[str, str]:
    """Return the version and the verdict of a program of the folder ``clients``."""
    program = PROGRAMS[name]
    is_npm, modules = program.package.startswith("npm:"), clients / "npm" / "node_modules"
    package = program.package.removeprefix("npm:")
    python = clients / "pip" / package / "bin" / "python"
    if not (modules / package if is_npm else python).exists():
        return "", f"not installed: {package}"
    (home := work / "home").mkdir(parents=True)
    if is_npm:
        version = json.loads((modules / package / "package.json").read_text())["version"]
        (file := clients / "npm" / "asked.mjs").write_text(program.code)
        command = ["node", str(file)]
    else:
        asked = f"from importlib.metadata import version; print(version({package!r}))"
        told = subprocess.run(
            [str(python), "-c", asked], capture_output=True, text=True, check=True
        )
        version, command = told.stdout.strip(), [str(python), "-c", program.code]
    stand_in = StandIn(home, PORT)
    programs = f"{Path(sys.executable).parent}:{modules / '.bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": programs, "OPENAI_API_KEY": KEY}
    environment |= {"OLLAMA_HOST": stand_in.url, "OLLAMA_API_KEY": KEY}
    environment |= {"OPENAI_BASE_URL": f"{stand_in.url}/v1", "RECIPE": recipe("llm", stand_in.url)}
    try:
        ended = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=home,
            check=False,
        )
    finally:
        stand_in.end()
    if program.wanted in ended.stdout:
        first = ended.stdout.strip().splitlines()[0] if "first answer" in ended.stdout else ""
        return version, f"yes: {first or 'asked and answered'}"
    return version, f"no: {' '.join((ended.stdout + ended.stderr).split())[-200:]}"
