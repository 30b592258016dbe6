"""Remembers the files that ``redraft models get`` fetched. Nothing else is ever removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lsp_server.shared.errors import RedraftError
from operating_system.files import write_private
from operating_system.folders import cache_folder


def models_folder() -> Path:
    """Where fetched models are kept."""
    return cache_folder() / "models"


def fetched_models() -> dict[str, dict[str, Any]]:
    """What was fetched and is still here, by file name: ``{"name", "size", "changed"}``."""
    return {name: state for name, state in _read().items() if (models_folder() / name).is_file()}


def note_fetched(file: Path, name: str) -> None:
    """A file came and was checked, or was made here."""
    state = file.stat()
    known = _read()
    known[file.name] = {"name": name, "size": state.st_size, "changed": state.st_mtime_ns}
    _write(known)


def was_changed(file: Path) -> bool:
    """Whether a fetched file is another one than came."""
    noted, state = fetched_models()[file.name], file.stat()
    return (state.st_size, state.st_mtime_ns) != (noted["size"], noted["changed"])


def remove_fetched(wanted: str) -> list[Path]:
    """Delete the files of a model by its name or that of a file; an empty name stands for the only
    one. Raises RedraftError."""
    known = fetched_models()
    low = wanted.lower()
    exact = {state["name"] for state in known.values() if state["name"].lower() == low}
    similar = {
        state["name"] for file, state in known.items() if low in f"{file} {state['name']}".lower()
    }
    names = exact or similar
    if len(names) != 1:
        listed = ", ".join(sorted({state["name"] for state in known.values()}))
        raise RedraftError(
            f"{wanted or 'no name'} stands for {len(names)} models; fetched were: {listed}"
            if known
            else "nothing was fetched by `redraft models get`, and only that is removed"
        )
    files = [models_folder() / file for file, state in known.items() if state["name"] in names]
    for file in files:
        if was_changed(file):
            raise RedraftError(f"{file} was changed since it was fetched; remove it yourself")
    for file in files:
        file.unlink()
    gone = {file.name for file in files}
    _write({name: state for name, state in _read().items() if name not in gone})
    return files


def _list() -> Path:
    return models_folder() / "fetched.json"


def _read() -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(_list().read_text("utf-8"))
        return {
            str(name): {key: state[key] for key in ("name", "size", "changed")}
            for name, state in found.items()
            if Path(name).name == name
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write(known: dict[str, dict[str, Any]]) -> None:
    write_private(_list(), json.dumps(known, indent=2) + "\n")
