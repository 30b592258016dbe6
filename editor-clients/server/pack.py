#!/usr/bin/env python3
"""Packs the server for the extensions: pack.py FOLDER.

FOLDER then holds our wheel, ``install.py``, ``server.json`` (version, protocol) and the pins of
what the wheel needs: with hashes where uv and a registry are at hand, else without.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "accel",
    "repo_index",
    "lsp_server",
    "operating_system",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
PINNED_FROM = [3, 11]
"""The oldest Python for which the pinned versions exist."""


def main() -> int:
    """Pack, and say what was packed."""
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(folder)
    hashed = write_pins(folder)
    told = {
        "version": constant("lsp_server/version.py", "VERSION"),
        "protocol": constant("lsp_server/protocol/server_routes.py", "PROTOCOL"),
        "wheel": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "pinned_from": PINNED_FROM,
    }
    (folder / "server.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    shutil.copy(Path(__file__).with_name("install.py"), folder)
    pins = "with hashes" if hashed else "without hashes"
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; what it needs is pinned {pins}")
    return 0


def build_wheel(folder: Path) -> Path:
    """Build the wheel of a copy: what an earlier build left behind does not come into it."""
    for old in folder.glob("redraft-*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as copy:
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part, Path(copy) / part, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(ROOT / part, copy)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--wheel-dir", str(folder), copy],
            check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"},
        )  # fmt: skip
    (wheel,) = folder.glob("redraft-*.whl")
    return wheel


def write_pins(folder: Path) -> bool:
    """The versions of what the wheel needs; True where with hashes. Kept until they change."""
    shutil.copy(ROOT / "constraints.txt", folder)
    pinned = b"".join((ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt"))
    stamp, requirements = folder / ".pins", folder / "requirements.txt"
    state = hashlib.sha256(pinned).hexdigest()
    if stamp.is_file() and requirements.is_file() and stamp.read_text(encoding="utf-8") == state:
        return True
    uv = os.environ.get("REDRAFT_UV") or shutil.which("uv")
    if uv is None:
        requirements.unlink(missing_ok=True)
        print("pack.py: uv is not here (REDRAFT_UV names it)", file=sys.stderr)
        return False
    result = subprocess.run(
        [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header",
         "--no-annotate", "--python-version", ".".join(map(str, PINNED_FROM)),
         "--constraint", "constraints.txt", "--output-file", str(requirements), "pyproject.toml"],
        cwd=ROOT, check=False,
    )  # fmt: skip
    if result.returncode == 0:
        stamp.write_text(state, encoding="utf-8")
    else:
        requirements.unlink(missing_ok=True)
    return result.returncode == 0


def constant(file: str, name: str) -> object:
    """The value of a constant of a module, which is not imported for it."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
            return ast.literal_eval(statement.value)
    raise AssertionError(f"{file} has no {name}")


if __name__ == "__main__":
    sys.exit(main())
