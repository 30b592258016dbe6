"""A second model proposes the new text of edits: through the server and the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_model import SMALL_MODEL
from steady_costs import DTYPE, THREADS, keep_costs

from .client import Driver, command, profile

pytestmark = pytest.mark.slow

DRAFT_MODEL = SMALL_MODEL
"""Its drafts are what the model itself writes: some are taken, however much is drafted here."""
INSTRUCTION = "log the arguments at the start with debug"
FUNCTION = """\
def parse_config(path):
    config = configparser.ConfigParser()
    config.read(path)
    return config
"""
LINES = "1:4"
Connect = Callable[..., Driver]


def edited(environment: dict[str, str], file: Path, model: Path, *options: str) -> dict[str, Any]:
    """What the command answers."""
    words = ("edit", str(file), "--lines", LINES, "--instruction", INSTRUCTION)
    more = ("--model", str(model), "--no-index", "--json", "-", *options)
    done = command(environment, *words, *more)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def drafted(answer: dict[str, Any]) -> int:
    """Accepted tokens of the draft model."""
    count: int = answer["sources"].get("draft_model", 0)
    return count


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the user's own, which is asked whatever the instruction is."""
    folder = tmp_path_factory.mktemp("own")
    for file in SMALL_MODEL.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    return folder


@pytest.fixture
def settings(
    environment: dict[str, str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Of a server that plans with steady costs, with which drafts pay."""
    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
    keep_costs(model)
    return {"model": {"path": str(model), "dtype": DTYPE, "threads": THREADS}}


@pytest.fixture
def file(first: Driver, tmp_path: Path) -> Path:
    """A file to edit, once all that edits need is compiled."""
    path = tmp_path / "settings_file.py"
    path.write_text(FUNCTION)
    return path


def test_a_draft_model_changes_nothing_but_the_speed(
    environment: dict[str, str], file: Path, model: Path
) -> None:
    alone = edited(environment, file, model)
    helped = edited(environment, file, model, "--draft-model", str(DRAFT_MODEL))
    assert helped["text"] == alone["text"]
    assert drafted(helped) > drafted(alone) == 0


def test_entropy_takes_tokens_of_the_draft_model_that_are_likely(
    environment: dict[str, str], file: Path, model: Path
) -> None:
    options = ("--draft-model", str(DRAFT_MODEL), "--verification", "entropy", "--entropy-k", "8")
    assert drafted(edited(environment, file, model, *options)) > 0


def edit(driver: Driver, uri: str) -> dict[str, Any]:
    """The server's answer."""
    where = {
        "start": {"line": 0, "character": 0},
        "end": {"line": 3, "character": len("    return config")},
    }
    document = {"uri": uri, "version": 1}
    params = {"textDocument": document, "range": where, "instruction": INSTRUCTION}
    answer: dict[str, Any] = driver.answer(driver.start("redraft/edit", params), timeout=240)
    return answer


@pytest.mark.parametrize("verification", ["exact", "entropy"])
def test_settings_name_the_draft_model_and_what_is_taken_of_it(
    connect: Connect, workspace: Path, settings: dict[str, Any], verification: str
) -> None:
    drafts = {"draftModel": str(DRAFT_MODEL), "verification": verification, "entropyK": 8}
    driver = connect(initializationOptions={"settings": settings | {"edit": drafts}})
    uri = (workspace / "drafted.py").as_uri()
    driver.open(uri, FUNCTION)
    result = edit(driver, uri)["result"]
    assert drafted(result["statistics"]) > 0
    plain = connect(initializationOptions={"settings": settings})
    plain.open(uri, FUNCTION)
    own = edit(plain, uri)["result"]["text"]
    assert verification == "entropy" or result["text"] == own


def test_a_draft_model_with_another_tokenizer_is_refused_with_the_reason(
    connect: Connect, workspace: Path, model: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(DRAFT_MODEL, other)
    vocabulary = json.loads((other / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary["truncation"] = {
        "direction": "Right",
        "max_length": 512,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    (other / "tokenizer.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    driver = connect(initialize=False)
    settings = {"model": {"path": str(model)}, "edit": {"draftModel": str(other)}}
    driver.initialize(
        {**profile("vscode"), "initializationOptions": {"settings": settings}}, workspace
    )
    uri = (workspace / "other.py").as_uri()
    driver.open(uri, FUNCTION)
    message = edit(driver, uri)["error"]["message"]
    assert "another tokenizer" in message
    assert "same family" in message
