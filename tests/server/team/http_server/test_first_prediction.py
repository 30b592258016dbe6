"""On a new machine a prediction counts before what drafts edits is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from served import chat_model, serving
from steady_costs import DTYPE, THREADS, hold_costs, keep_costs

from accel.verification.sampling import Sampling
from lsp_server.engine.compiling import CompileTask, CompilingBehind
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import EditJob, GenerateJob
from lsp_server.shared.contract.options import EngineOptions

CODE = "def total(values):\n    result = 0\n    for value in values:\n        result += value\n"
MESSAGES = [("user", f"repeat:\n{CODE}")]
COMPILED_S = 1200.0
WAITING = CompileTask("edits", "timeit", ("-n1", "-r1", "import time; time.sleep(600)"), 1.0)


@pytest.fixture
def compiling(model: Path) -> Iterator[EngineService]:
    """An engine for which another process still compiles what drafts edits."""
    keep_costs(model)
    service = EngineService(EngineOptions(path=str(model), dtype=DTYPE, threads=THREADS))
    service.load()
    hold_costs(service.model.engines)
    service.model.edits_behind = CompilingBehind([WAITING])
    yield service
    service.close()


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_prediction_counts_while_another_process_compiles(
    compiling: EngineService, temperature: float
) -> None:
    asked = GenerateJob(
        messages=MESSAGES, max_tokens=64, sampling=Sampling(temperature, seed=3), plain=True
    )
    plain = compiling.write(asked)
    predicted = replace(asked, plain=False, prediction=plain.text)
    first = compiling.write(predicted)
    assert not compiling.model.edits_behind.is_over
    compiling.model.edits_behind.close()
    later = compiling.write(predicted)
    for result in (first, later):
        assert result.text == plain.text
        assert 20 < result.prediction_accepted <= result.prediction_tokens
        assert result.forwards < plain.forwards / 2
    foreign = compiling.write(replace(predicted, prediction="zebra " * 20))
    assert foreign.text == plain.text
    assert foreign.prediction_tokens > 10


def test_an_edit_is_drafted_while_another_process_compiles(compiling: EngineService) -> None:
    asked = EditJob("", "a.py", "rename result to amount", CODE * 2, max_tokens=64, plain=True)
    plain = compiling.write(asked)
    edited = compiling.write(replace(asked, plain=False))
    assert not compiling.model.edits_behind.is_over
    assert edited.text == plain.text
    assert edited.forwards < plain.forwards


def test_what_is_foreign_is_not_counted_while_another_process_compiles(
    compiling: EngineService,
) -> None:
    asked = GenerateJob(messages=MESSAGES, max_tokens=24, prediction="zebra \N{SNOWMAN} " * 20)
    assert compiling.write(asked).prediction_accepted < 5
    assert compiling.write(replace(asked, prediction="")).prediction_tokens == 0
    filled = replace(asked, messages=None, text="x = ", suffix="\n", prediction="1 + 2\n")
    assert compiling.write(filled).text == compiling.write(replace(filled, plain=True)).text


@pytest.mark.long
@pytest.mark.timeout(2 * COMPILED_S)
def test_the_first_request_of_a_new_machine_takes_its_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    folder = tmp_path / "model"
    folder.mkdir()
    messages = [{"role": "user", "content": f"repeat:\n{CODE}"}]
    asked = {"messages": messages, "max_tokens": 48}
    with serving(tmp_path, chat_model(folder)) as server:
        content = {"type": "content", "content": CODE}
        first = server.post("/v1/chat/completions", {**asked, "prediction": content}).json()
        plain = server.post("/v1/chat/completions", asked).json()
        assert first["choices"] == plain["choices"]
        text = plain["choices"][0]["message"]["content"]
        told = server.post(
            "/v1/chat/completions", {**asked, "prediction": {"type": "content", "content": text}}
        ).json()
        assert told["choices"] == plain["choices"]
        assert told["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] > 10
