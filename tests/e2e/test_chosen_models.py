"""A model that the user chose on the command line, in an editor that is open."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .client import Driver, command, profile


def names(path: str) -> Callable[[Any], bool]:
    """Whether a message is a status about the model at ``path``."""
    return lambda message: (
        message["method"] == "redraft/status" and message["params"]["model"].startswith(path)
    )


def test_an_open_editor_takes_up_a_choice_unless_it_names_a_model(
    environment: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "chosen.gguf"
    broken.write_bytes(b"GGUF")
    kept = Path(environment["XDG_CONFIG_HOME"]) / "redraft" / "models.json"
    open_editor, own = Driver(environment), Driver(environment)
    open_editor.initialize(profile("vscode"))
    own.initialize(profile("vscode"), settings={"model": {"path": "/nowhere/else"}})
    own.wait_for(names("/nowhere/else"))
    refused = command(environment, "models", "use", str(broken))
    assert refused.returncode == 1
    assert "damaged" in refused.stderr
    assert not kept.exists()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"completion": str(broken)}))
        # The choice of a draft model alone has the editors read the file again.
        assert command(environment, "models", "use", "embedded", "--for", "drafts").returncode == 0
        told = open_editor.wait_for(names(str(broken)))
        assert told["params"]["state"] in ("loading", "error")
        assert not any(map(names(str(broken)), own.notifications))
        done = command(environment, "models", "use", "embedded")
        assert done.returncode == 0, done.stderr
        assert "editor window(s) use it now" in done.stdout
    finally:
        kept.unlink()
        open_editor.close()
        own.close()
