#!/usr/bin/env python3
"""Packs the server for the extensions: pack.py FOLDER [WHEEL].

FOLDER then holds our wheel, ``install.py``, ``server.json`` (version, protocol, default model) and
the pins of what the wheel needs: with hashes where uv and a registry are at hand, else without.
Without WHEEL one is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from release.distributions import build_wheel, constant  # noqa: E402
from release.resolving import PINNED_FROM  # noqa: E402


def main() -> int:
    """Pack, and say what was packed."""
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 2:
        for old in folder.glob("redraft-*.whl"):
            old.unlink()
        wheel = Path(shutil.copy(sys.argv[2], folder))
    else:
        wheel = build_wheel(folder)
    hashed = write_pins(folder)
    told = {
        "version": constant("lsp_server/shared/version.py", "VERSION"),
        "protocol": constant("lsp_server/shared/version.py", "PROTOCOL"),
        "model": constant("lsp_server/editor/notices/first_start.py", "DEFAULT_IS"),
        "wheel": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "pinned_from": [3, PINNED_FROM],
    }
    (folder / "server.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    shutil.copy(Path(__file__).with_name("install.py"), folder)
    pins = "with hashes" if hashed else "without hashes"
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; what it needs is pinned {pins}")
    return 0


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
         "--no-annotate", "--python-version", f"3.{PINNED_FROM}",
         "--constraint", "constraints.txt", "--output-file", str(requirements), "pyproject.toml"],
        cwd=ROOT, check=False,
    )  # fmt: skip
    if result.returncode == 0:
        stamp.write_text(state, encoding="utf-8")
    else:
        requirements.unlink(missing_ok=True)
    return result.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
