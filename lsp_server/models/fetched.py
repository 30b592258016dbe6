"""Remembers the files that ``redraft models get`` fetched. Nothing else is ever removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lsp_server.shared.errors import RedraftError
from operating_system.files import write_private
from operating_system.folders import cache_folder


def models_folder() -> Path:
    """Return the folder of fetched models."""
    return cache_folder() / "models"


def fetched_models() -> dict[str, dict[str, Any]]:
    """Return the fetched models whose files still exist, by file name: ``{"name", "size",
    "changed"}``."""
    return {name: state for name, state in _read().items() if (models_folder() / name).is_file()}


def note_fetched(file: Path, name: str) -> None:
    """A file came and was checked, or was made here."""
    state = file.stat()
    entries = _read()
    entries[file.name] = {"name": name, "size": state.st_size, "changed": state.st_mtime_ns}
    _write(entries)


def was_changed(file: Path) -> bool:
    """Return True if a fetched file differs from the download."""
    noted, state = fetched_models()[file.name], file.stat()
    return (state.st_size, state.st_mtime_ns) != (noted["size"], noted["changed"])


def remove_fetched(name_or_part: str) -> list[Path]:
    """Delete the files of a model by its name or that of a file; an empty name stands for the only
    one. Raises RedraftError."""
    entries = fetched_models()
    low = name_or_part.lower()
    exact = {state["name"] for state in entries.values() if state["name"].lower() == low}
    similar = {
        state["name"] for file, state in entries.items() if low in f"{file} {state['name']}".lower()
    }
    names = exact or similar
    if len(names) != 1:
        listed = ", ".join(sorted({state["name"] for state in entries.values()}))
        raise RedraftError(
            f"{name_or_part or 'no name'} stands for {len(names)} models; fetched were: {listed}"
            if entries
            else "nothing was fetched by `redraft models get`, and only that is removed"
        )
    files = [models_folder() / file for file, state in entries.items() if state["name"] in names]
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
        entries = json.loads(_list().read_text("utf-8"))
        return {
            str(name): {key: state[key] for key in ("name", "size", "changed")}
            for name, state in entries.items()
            if Path(name).name == name
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write(entries: dict[str, dict[str, Any]]) -> None:
    write_private(_list(), json.dumps(entries, indent=2) + "\n")
