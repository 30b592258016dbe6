"""A model that the user chose on the command line, in an editor that is open."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_model import SMALL_MODEL

from .client import Driver, command, profile


def names(path: str) -> Callable[[Any], bool]:
    """Whether a message is a status about the model at ``path``."""
    return lambda message: (
        message["method"] == "redraft/status" and message["params"]["model"].startswith(path)
    )


def test_an_open_editor_takes_up_a_choice_unless_it_names_a_model(
    own_environment: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "chosen.gguf"
    broken.write_bytes(b"GGUF")
    kept = Path(own_environment["XDG_CONFIG_HOME"]) / "redraft" / "models.json"
    open_editor, own = Driver(own_environment), Driver(own_environment)
    open_editor.initialize(profile("vscode"))
    own.initialize(profile("vscode"), settings={"model": {"path": "/nowhere/else"}})
    own.wait_for(names("/nowhere/else"))
    refused = command(own_environment, "models", "use", str(broken))
    assert refused.returncode == 1
    assert "damaged" in refused.stderr
    assert "chosen.gguf" not in kept.read_text()
    try:
        kept.write_text(json.dumps({"completion": str(broken)}))
        # The choice of a draft model alone has the editors read the file again.
        assert command(own_environment, "models", "use", "none", "--for", "drafts").returncode == 0
        told = open_editor.wait_for(names(str(broken)))
        assert told["params"]["state"] in ("loading", "error")
        assert not any(map(names(str(broken)), own.notifications))
        done = command(own_environment, "models", "use", "none")
        assert done.returncode == 0, done.stderr
        assert "editor window(s) use it now" in done.stdout
    finally:
        open_editor.close()
        own.close()


def test_an_editor_lists_models_and_chooses_one(
    own_environment: dict[str, str], tmp_path: Path
) -> None:
    store = Path(own_environment["XDG_CACHE_HOME"]) / "llama.cpp" / "small"
    shutil.copytree(SMALL_MODEL, store, ignore=shutil.ignore_patterns("draft"))
    kept = Path(own_environment["XDG_CONFIG_HOME"]) / "redraft" / "models.json"
    editor = Driver(own_environment)
    try:
        editor.initialize(profile("vscode"))
        listed = editor.request("redraft/models", {})["models"]
        (found,) = (one for one in listed if one["source"] == "llama.cpp")
        assert (found["name"], found["source"], found["problem"]) == ("small", "llama.cpp", "")
        (path,) = found["paths"]
        chosen = {"command": "redraft.useModel", "arguments": [{"path": path}]}
        assert editor.request("workspace/executeCommand", chosen) == {"path": path}
        editor.wait_for(names(path))
        nowhere = {**chosen, "arguments": [{"path": str(tmp_path / "none.gguf")}]}
        refused = editor.answer(editor.start("workspace/executeCommand", nowhere))
        assert "none.gguf" in refused["error"]["message"]
        assert json.loads(kept.read_text())["completion"] == path
        back = {**chosen, "arguments": [{"path": ""}]}
        assert editor.request("workspace/executeCommand", back) == {"path": ""}
    finally:
        editor.close()
