"""The models on a machine: stores of other programs, made as those programs make them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_cases import data_cases

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import LearntCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.fingerprint import fingerprint
from lsp_server.commands.cli import models as command
from lsp_server.commands.cli.fetch_and_compile import choose_if_none
from lsp_server.commands.cli.main import main
from lsp_server.models import catalogue
from lsp_server.models.catalogue import find_model, known_models
from lsp_server.models.choices import Choices, choices_file, read_choices, write_choice
from lsp_server.models.fetched import note_fetched
from lsp_server.shared.errors import RedraftError


@pytest.fixture(autouse=True)
def home(bare_home: Path) -> Path:
    return bare_home


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that fills in the middle and has a chat template."""
    return saved(tmp_path_factory.mktemp("weights") / "m.gguf", "apache-2.0")


def saved(path: Path, licence: str) -> Path:
    module = random_module("qwen2")
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    return write_gguf(path, metadata | {"general.license": licence}, gguf_tensors(module, "F16"))


def placed(weights: Path, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(weights, path)
    return path


def in_hub_cache(weights: Path, cache: Path, name: str) -> Path:
    """As ``huggingface_hub`` keeps it: a blob, and a link to it in a snapshot."""
    model = cache / f"models--{name.replace('/', '--')}"
    blob = placed(weights, model / "blobs" / "0a1b")
    link = model / "snapshots" / "c2d3" / "small-q8_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    return link


def in_ollama(weights: Path, folder: Path, name: str, tag: str) -> Path:
    """As Ollama keeps it: a blob by its hash, and a manifest."""
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    blob = placed(weights, folder / "blobs" / f"sha256-{digest}")
    manifest = folder / "manifests" / "registry.ollama.ai" / "library" / name / tag
    manifest.parent.mkdir(parents=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:00"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
    ]
    manifest.write_text(json.dumps({"layers": layers}))
    return blob


STORES = {
    "Hugging Face": lambda weights, home: in_hub_cache(
        weights, home / ".cache" / "huggingface" / "hub", "owner/small"
    ),
    "llama.cpp": lambda weights, home: placed(
        weights, home / ".cache" / "llama.cpp" / "small.gguf"
    ),
    "LM Studio": lambda weights, home: placed(
        weights, home / ".lmstudio" / "models" / "owner" / "repo" / "small.gguf"
    ),
    "Ollama": lambda weights, home: in_ollama(
        weights, home / ".ollama" / "models", "small", "1.5b"
    ),
    "redraft": lambda weights, home: placed(
        weights, home / ".cache" / "redraft" / "models" / "small.gguf"
    ),
}
NAMES = {"Hugging Face": "owner/small/small-q8_0", "Ollama": "small:1.5b"}


@pytest.mark.parametrize("store", STORES)
def test_a_store_of_another_program_is_read(store: str, weights: Path, home: Path) -> None:
    path = STORES[store](weights, home)
    (model,) = known_models()
    assert (model.name, model.source) == (NAMES.get(store, "small"), store)
    assert model.paths == (path,)
    assert model.family == "qwen2"
    assert model.licence == "apache-2.0"
    assert model.does == ("fim", "left", "edit")
    assert 15 < model.bits < 33
    assert model.problem == ""


def test_variables_of_those_programs_count(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_hub_cache(weights, tmp_path / "hub", "owner/small")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert [model.source for model in known_models()] == ["Hugging Face"]
    monkeypatch.delenv("HF_HUB_CACHE")
    assert known_models() == []
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "hub"))
    assert [model.source for model in known_models()] == ["folder"]


def test_copies_in_all_stores_are_models_of_different_names(weights: Path, home: Path) -> None:
    paths = {make(weights, home) for make in STORES.values()}
    models = known_models()
    assert {path for model in models for path in model.paths} == paths
    assert len({model.name for model in models}) == len(STORES)


def test_half_a_file_of_ours_is_no_model(weights: Path, home: Path) -> None:
    models = home / ".cache" / "redraft" / "models"
    placed(weights, models / "unfinished" / "0a1b" / "half.gguf")
    placed(weights, models / "whole.gguf")
    assert [model.name for model in known_models()] == ["whole"]


def test_two_models_are_two(weights: Path, home: Path, tmp_path: Path) -> None:
    STORES["llama.cpp"](weights, home)
    saved(home / ".cache" / "llama.cpp" / "other.gguf", "mit")
    assert [model.licence for model in known_models()] == ["mit", "apache-2.0"]


def test_what_cannot_be_opened_is_listed_last_and_says_why(weights: Path, home: Path) -> None:
    folder = home / ".cache" / "llama.cpp"
    placed(weights, folder / "z.gguf")
    (folder / "a.gguf").write_bytes(weights.read_bytes()[:2000])
    (folder / "mmproj-model.gguf").write_bytes(b"GGUF")
    fine, broken = known_models()
    assert (fine.name, broken.name) == ("z", "a")
    assert "damaged" in broken.problem
    with pytest.raises(RedraftError, match="damaged"):
        command.run(arguments("use", "a"))


def test_a_changed_file_is_read_again_and_others_are_not(
    weights: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    describe = catalogue.describe
    monkeypatch.setattr(
        catalogue, "describe", lambda path: read.append(path.name) or describe(path)
    )
    folder = home / ".cache" / "llama.cpp"
    first = placed(weights, folder / "a.gguf")
    saved(folder / "other.gguf", "mit")
    before = known_models()
    assert sorted(read) == ["a.gguf", "other.gguf"]
    read.clear()
    assert known_models() == before
    assert read == []
    first.write_bytes(weights.read_bytes()[:3000])
    known_models()
    assert read == ["a.gguf"]


def measured(path: Path) -> None:
    """As if the engine had measured forwards of a model."""
    costs = ForwardCosts([0, 1024], [1, 64], np.array([[0.01, 0.2], [0.02, 0.3]]))
    ProfileStore(fingerprint(path, "cpu")).put("costs", LearntCosts(costs).to_json())


@pytest.mark.slow
def test_three_hundred_files_are_listed_almost_as_soon_as_none_once_they_are_known(
    weights: Path, home: Path
) -> None:
    none = {form: seconds_to_list(*form) for form in FORMS}
    folder = home / ".cache" / "llama.cpp"
    for number in range(300):
        path = placed(weights, folder / f"{number}.gguf")
        with path.open("ab") as stream:
            stream.write(bytes(str(number), "ascii"))
        measured(path)
    seconds_to_list()
    for form in FORMS:
        seconds = [seconds_to_list(*form) for _ in range(2)]
        print("seconds of processor time:", *form, none[form], *seconds)
        assert min(seconds) < 3 * none[form]


FORMS: list[tuple[str, ...]] = [(), ("--json",)]


def seconds_to_list(*form: str) -> float:
    """Processor time of the command."""
    command = [sys.executable, "-m", "lsp_server", "models", *form]
    before = children_seconds()
    subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return round(children_seconds() - before, 2)


def children_seconds() -> float:
    """Processor time of processes that were waited for."""
    times = os.times()
    return times.children_user + times.children_system


def arguments(*words: str) -> Any:
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_a_name_may_be_short_where_it_is_clear(weights: Path, home: Path) -> None:
    folder = home / ".cache" / "llama.cpp"
    path = placed(weights, folder / "qwen-coder.gguf")
    saved(folder / "other.gguf", "mit")
    models = known_models()
    assert find_model(models, "coder").paths == (path,)
    assert find_model(models, str(path)).paths == (path,)
    with pytest.raises(RedraftError, match="may be any of other, qwen-coder"):
        find_model(models, "e")
    with pytest.raises(RedraftError, match="no model here is called mistral"):
        find_model(models, "mistral")


def test_of_two_models_with_one_name_the_path_is_wanted(weights: Path, home: Path) -> None:
    first = placed(weights, home / "models" / "a" / "small.gguf")
    (home / "models" / "b").mkdir()
    other = saved(home / "models" / "b" / "small.gguf", "mit")
    models = known_models([home / "models"])
    with pytest.raises(RedraftError, match=f"2 models here are called small; give .*{first}"):
        find_model(models, "small")
    assert find_model(models, str(other)).paths == (other,)


def test_a_choice_is_kept_and_taken_back(weights: Path, home: Path) -> None:
    path = placed(weights, home / ".cache" / "llama.cpp" / "small.gguf")
    assert main(["models", "use", "small"]) == 0
    assert read_choices() == Choices(completion=str(path))
    assert main(["models", "use", "small", "--for", "next-edits"]) == 0
    assert read_choices() == Choices(completion=str(path), next_edits=str(path))
    assert main(["models", "use", "none", "--for", "next-edits"]) == 0
    assert main(["models", "use", "small", "--for", "drafts"]) == 0
    assert read_choices() == Choices(completion=str(path), drafts=str(path))
    assert main(["models", "use", "none"]) == 0
    assert read_choices() == Choices(drafts=str(path))
    assert main(["models", "use", "small", "--for", "edits"]) == 0
    assert read_choices() == Choices(edits=str(path), drafts=str(path))


@data_cases()
def test_the_first_model_that_is_fetched_is_chosen_for_what_it_does(
    name: str, purpose: str, weights: Path, home: Path
) -> None:
    file = placed(weights, home / name)
    told = choose_if_none(file)
    assert told.startswith(f"it is chosen for {purpose}, where nothing was")
    assert getattr(read_choices(), purpose.replace("-", "_")) == str(file)
    other = placed(weights, home / f"other-{name}")
    wanted = " --for next-edits" if purpose == "next-edits" else ""
    assert choose_if_none(other) == f"`redraft models use other-{file.stem}{wanted}` chooses it"
    assert str(other) not in asdict(read_choices()).values()


def test_a_fetched_file_that_is_no_model_is_not_chosen(home: Path) -> None:
    (home / "text.gguf").write_bytes(b"no model")
    assert choose_if_none(home / "text.gguf") == "`redraft models use text` chooses it"
    assert read_choices() == Choices()


@pytest.mark.parametrize("written", ["whole", "relative", "from home"])
def test_a_model_outside_of_all_stores_is_chosen_by_its_path(
    written: str, weights: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = placed(weights, home / "m.gguf")
    monkeypatch.chdir(home)
    words = {"whole": str(path), "relative": "m.gguf", "from home": "~/m.gguf"}
    assert main(["models", "use", words[written]]) == 0
    assert read_choices().completion == str(path)


def test_a_chosen_model_is_listed_wherever_it_lies_and_missed_once_it_is_gone(
    weights: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = placed(weights, home / "mine.gguf")
    write_choice("completion", str(path))
    assert main(["models"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert (shown[0], shown[-1]) == ("mine", "    chosen for completion, edits")
    path.unlink()
    assert main(["models"]) == 0
    told = capsys.readouterr().out
    assert f"completion: {path} is not there; choose another: redraft models use NAME" in told


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "no model at {path}: there is nothing of that name in {path.parent}"),
        (lambda path: path.write_text("hello"), "{path} is damaged: it does not begin as a GGUF"),
        (lambda path: path.write_text(""), "{path} is empty; fetch that file again"),
        (lambda path: path.mkdir(), "{path} is empty; fetch the model into it, or give another"),
    ],
)
def test_a_path_that_is_no_model_is_told_in_one_line(
    make: Any, told: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "mine.gguf"
    make(path)
    assert main(["models", "use", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"redraft: {told.format(path=path)}")
    assert read_choices() == Choices()


@pytest.mark.parametrize("config", ["[]", "3", '{"model_type": "llama", "hidden_size": "big"}'])
def test_a_folder_with_a_strange_config_is_listed_with_its_problem(config: str, home: Path) -> None:
    folder = home / "models" / "strange"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config)
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    (model,) = known_models([folder.parent])
    assert "config.json" in model.problem


def test_a_folder_that_is_not_there_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--folder", str(home / "nowhere")]) == 1
    assert (
        capsys.readouterr().err
        == f"redraft: {home}/nowhere is not a folder; give one with models\n"
    )


def test_what_llama_cpp_computes_can_be_opened_once_it_is_installed(
    weights: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = random_module("qwen2")
    metadata = {"general.architecture": "martian", **vocabulary_metadata(module.config.vocab_size)}
    folder = home / ".cache" / "llama.cpp"
    folder.mkdir(parents=True)
    write_gguf(folder / "martian.gguf", metadata, gguf_tensors(module, "F16"))
    for installed in (False, True):
        for place in ("accel.models.llama_cpp.library_files", "accel.models.model_file"):
            monkeypatch.setattr(f"{place}.is_installed", lambda here=installed: here)
        (model,) = known_models()
        assert ("pip install" in model.problem) is not installed


@pytest.mark.parametrize("content", ["", "[]", '{"completion": 3}', "{"])
def test_a_damaged_file_of_choices_counts_as_none(content: str) -> None:
    write_choice("completion", "a.gguf")
    choices_file().write_text(content)
    assert read_choices() == Choices()


def test_json_has_what_tools_read(
    weights: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = placed(weights, home / ".cache" / "llama.cpp" / "small.gguf")
    write_choice("completion", str(path))
    assert main(["models", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["chosen"] == {
        "completion": str(path),
        "edits": str(path),
        "next-edits": "",
        "drafts": "",
    }
    (model,) = printed["models"]
    speeds = model.pop("first_text_s"), model.pop("tokens_per_s")
    assert all(number > 0 for number in speeds)
    assert model.pop("parameters") > 1000
    assert model.pop("bits") > 4
    assert model.pop("context_tokens") > 0
    assert model == {
        "name": "small",
        "names": ["small"],
        "paths": [str(path)],
        "source": "llama.cpp",
        "family": "qwen2",
        "licence": "apache-2.0",
        "terms": "",
        "purpose": "",
        "does": ["fim", "left", "edit"],
        "fits": True,
        "measured": False,
        "problem": "",
    }


def test_people_read_what_a_model_is_and_what_it_is_chosen_for(
    weights: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models"]) == 0
    assert "no models found" in capsys.readouterr().out
    path = placed(weights, home / ".cache" / "llama.cpp" / "small.gguf")
    write_choice("completion", str(path))
    assert main(["models"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "small"
    assert re.fullmatch(
        r"    qwen2, [\d.]+ bits a weight, \d+ tokens of context, in llama.cpp", shown[1]
    )
    assert re.fullmatch(
        r"    [\d.]+ MB, licence apache-2.0; about \d+ tokens/s, first text after [\d.]+ s",
        shown[2],
    )
    assert shown[3] == "    fills in the middle, goes on from the left, edits"
    assert shown[4:] == ["    chosen for completion, edits"]
    write_choice("edits", "/another.gguf")
    measured(path)
    assert main(["models"]) == 0
    missed, *shown = capsys.readouterr().out.splitlines()
    assert missed.startswith("edits: /another.gguf is not there")
    assert shown[2].endswith("; 50 tokens/s, first text after 4.8 s"), "measured, not estimated"
    assert shown[4:] == ["    chosen for completion"]


def test_only_what_was_fetched_is_removed(
    weights: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "remove"]) == 1
    assert "nothing was fetched" in capsys.readouterr().err
    other = placed(weights, home / ".cache" / "llama.cpp" / "small.gguf")
    fetched = placed(weights, home / ".cache" / "redraft" / "models" / "fetched.gguf")
    note_fetched(fetched, "Small")
    write_choice("completion", str(fetched))
    write_choice("edits", str(fetched))
    assert main(["models", "remove"]) == 0
    assert not fetched.exists()
    assert other.exists()
    assert read_choices() == Choices()


def test_neither_torch_nor_a_compiler_is_loaded_to_list_models(weights: Path, home: Path) -> None:
    path = placed(weights, home / ".cache" / "llama.cpp" / "small.gguf")
    measured(path)
    program = (
        "import sys; from lsp_server.commands.cli.main import main; assert main(['models']) == 0; "
        "print({'torch', 'numba', 'llvmlite', 'transformers'} & {*sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=120, capture_output=True, text=True
    )
    assert "about" not in done.stdout, "its speed was measured"
    assert done.stderr.strip() == "set()"
