"""GGUF files as the server and the commands take them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from small_model import SMALL_MODEL

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from gguf_models import random_module, save_gguf

from lsp_server.commands.cli.main import main
from lsp_server.engine.model_paths import check_model, files_state, tokenizer_of
from lsp_server.engine.workspaces import text_tokenizer
from lsp_server.models.choices import choices_file, write_choice
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import CompletionJob, EditJob
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.contract.prompt_length import PromptLength
from lsp_server.shared.errors import ModelUnavailable
from lsp_server.shared.processes.framing import pack_frame, read_frame_blocking

COMPUTED: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
"""Sizes of which the compiled forward has all parts."""

ENGINE = "-m", "lsp_server.engine.process"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_gguf(tmp_path / "m.gguf", random_module("qwen2"), "F16")


def test_the_index_has_the_tokens_of_the_file(model: Path) -> None:
    check_model(model)
    tokenizer = text_tokenizer(str(model))
    assert tokenizer.vocabulary_size == 300
    assert tokenizer.encode(["ab"])[0].tolist() == [97, 98]


def test_an_index_is_for_the_model_that_was_chosen(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.py").write_text("price = count * each\n")

    def tokens(*options: str) -> int:
        store = str(tmp_path / f"store{len(options)}{choices_file().exists()}")
        assert main(["index", str(workspace), "--store", store, "--json", *options]) == 0
        return int(json.loads(capsys.readouterr().out)["tokens"])

    small = tokens("--model", str(SMALL_MODEL))
    write_choice("completion", str(model))
    # The file's vocabulary has bytes alone.
    assert tokens() > 20 > small


def test_a_folder_of_files_is_told_wherever_a_model_is_asked_for(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = f"{tmp_path} holds GGUF files; give the file itself, as {model}"
    for refused in (check_model, tokenizer_of):
        with pytest.raises(ModelUnavailable, match=re.escape(told)):
            refused(tmp_path)
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    place = [str(source), "--line", "1", "--character", "1"]
    lines = [str(source), "--lines", "1:1", "--instruction", "add a docstring"]
    for command in (["complete", *place], ["edit", *lines], ["index", str(tmp_path)]):
        assert main([*command, "--model", str(tmp_path)]) == 1
        assert capsys.readouterr().err == f"redraft: {told}\n"


def test_a_file_that_cannot_be_loaded_says_why_before_it_is(model: Path) -> None:
    state = files_state(model)
    model.write_bytes(model.read_bytes()[:3000])
    assert files_state(model) != state
    for refused in (check_model, tokenizer_of):
        with pytest.raises(ModelUnavailable) as caught:
            refused(model)
        assert "is damaged" in caught.value.cause
        assert caught.value.remedy == "fetch the file again"


def test_a_folder_with_the_file_says_which_it_is(model: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"holds GGUF files; give the file itself.*m.gguf"):
        check_model(model.parent)


class EngineProcess:
    """An engine process of its own, and the frames to and from it."""

    def __init__(
        self, path: Path, disk_cache_megabytes: int = 0, program: tuple[str, ...] = ENGINE
    ) -> None:
        options = EngineOptions(
            path=str(path), device="cpu", common=False, disk_cache_megabytes=disk_cache_megabytes
        )
        command = [sys.executable, *program, json.dumps(to_json(options))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def state(self) -> dict[str, Any]:
        """What it says once the model is loaded, or cannot be."""
        while (status := self._next()["status"])["state"] == "loading":
            pass
        return status

    def ask(self, operation: str, job: CompletionJob | EditJob) -> Any:
        """The answer to a job."""
        asked = {"id": 1, "urgency": 0, "client": "c", "kind": job.operation, "job": asdict(job)}
        self._input.write(pack_frame({"op": operation, **asked}))
        self._input.flush()
        while (frame := self._next())["event"] in ("spans", "status"):
            pass
        return frame

    def libraries(self) -> str:
        """The files that are mapped into its memory."""
        return Path(f"/proc/{self._process.pid}/maps").read_text("utf-8")

    def end(self) -> None:
        self._input.close()
        self._process.wait(60)

    def _next(self) -> dict[str, Any]:
        frame = read_frame_blocking(self._output.read)
        assert frame is not None, "the process ended"
        return frame


@pytest.fixture
def processes() -> Iterator[list[EngineProcess]]:
    started: list[EngineProcess] = []
    yield started
    for process in started:
        process.end()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what is mapped is not shown here")
def test_the_engine_process_of_a_file_never_loads_torch(
    tmp_path: Path, processes: list[EngineProcess]
) -> None:
    """Hundreds of megabytes are those of torch, which computes nothing of such a model."""
    module = random_module("qwen2", **COMPUTED)
    path = save_gguf(tmp_path / "computed.gguf", module, "Q8_0")
    process = EngineProcess(path, disk_cache_megabytes=8)
    processes.append(process)
    ready = process.state()
    assert (ready["state"], ready["dtype"]) == ("ready", "Q8_0"), ready
    assert PromptLength(ready["prompt_seconds"]).tokens(1.5) >= 256
    text = "def total(prices):\n    return "
    job = CompletionJob("", "a.py", text, "\n", max_tokens=4, prompt_seconds=1.5)
    opening = replace(job, prefix=text * 9, suffix=text * 9, opening=True)
    assert process.ask("prefill", opening)["result"]["prompt_tokens"] > 0
    assert process.ask("complete", job)["result"]["tokens"] > 0
    edit = EditJob("", "a.py", "rename prices to costs", text, max_tokens=4)
    assert process.ask("edit", edit)["event"] == "result"
    assert "numba" in process.libraries() or "llvmlite" in process.libraries()
    assert "torch" not in process.libraries()


@pytest.mark.long
def test_a_completion_on_the_command_line(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("def f(a):\n    b = \n    return b\n", encoding="utf-8")
    place = ["--line", "2", "--character", "9", "--model", str(model), "--backend", "own"]
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server", "complete", str(file), *place, "--kv-type", "int8"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "forwards" in done.stderr
    assert "note: keys and values stay in 16 bits" in " ".join(done.stderr.split())
