"""The first start without a chosen model, in real sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .client import Driver, profile, wait_until


def offers(editor: Driver) -> list[Any]:
    """Messages with buttons so far."""
    asked = (one for one in editor.asked if one["method"] == "window/showMessageRequest")
    return [one["params"] for one in asked]


def messages(editor: Driver) -> list[str]:
    """Messages without buttons so far."""
    told = (one for one in editor.notifications if one["method"] == "window/showMessage")
    return [one["params"]["message"] for one in told]


def joined(environment: dict[str, str], name: str = "vscode", **options: bool) -> Driver:
    editor = Driver(environment)
    editor.chosen = {"title": "Choose…"}
    editor.initialize(profile(name), redraft=options)
    return editor


def test_the_first_start_offers_a_model_once(own_environment: dict[str, str]) -> None:
    kept = Path(own_environment["XDG_STATE_HOME"]) / "redraft" / "setup.json"
    kept.unlink()
    chosen = Path(own_environment["XDG_CONFIG_HOME"]) / "redraft" / "models.json"
    chosen.unlink()
    editors = [joined(own_environment)]
    try:
        told = editors[0].request("redraft/status", {})
        assert (told["state"], told["message"]) == ("inactive", "no model is chosen")
        assert "redraft models get default" in told["remedy"]
        told = editors[0].wait_for(lambda message: message["method"] == "window/showMessage")
        assert "redraft models get default" in told["params"]["message"]
        assert len(messages(editors[0])) == 1
        assert offers(editors[0]) == [], "an editor without buttons is not asked"
        editors.append(joined(own_environment, chooseModel=True))
        editors[1].wait_for(lambda message: message["method"] == "redraft/chooseModel")
        (offer,) = offers(editors[1])
        assert "none is chosen" in offer["message"]
        assert "98 MB" in offer["message"]
        titles = [one["title"] for one in offer["actions"]]
        assert titles == ["Fetch the Default", "Choose…", "Not Now"]
        wait_until(kept.is_file)
        assert json.loads(kept.read_text()) == {"answer": "Choose…"}
        editors.append(joined(own_environment, chooseModel=True))
        editors[2].request("redraft/status", {})
        assert offers(editors[2]) == []
        kept.unlink()
    finally:
        for editor in editors:
            editor.close()
