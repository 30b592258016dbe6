"""Graphs are recorded one at a time, freed by one owner, and done without where they fail."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cuda_stand_in import INVALIDATED, NOT_PERMITTED, CudaStandIn, RecordingLlama, StandInGraph
from tiny_models import Oracle, open_engine, random_prompt, run, save

from accel.decoding.engine import Engine
from accel.models import recorded_graphs
from accel.models.batch import ForwardBatch, chain_batch
from accel.models.hf_loading import load_module

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    recorded_graphs.free_retired()
    yield
    recorded_graphs.free_retired()
    assert gc.isenabled()


@pytest.fixture(autouse=True)
def garbage_of_the_test() -> Iterator[None]:
    """The collector looks at what a test makes alone: all else that is imported takes it long."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> CudaStandIn:
    stand_in = CudaStandIn()
    stand_in.install(monkeypatch)
    return stand_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture(scope="module")
def answers(folder: Path) -> list[list[int]]:
    """Texts of the same model, computed without graphs."""
    plain = open_engine(folder)
    return [text(plain, number) for number in range(4)]


def recording(folder: Path, cuda: CudaStandIn, dtype: torch.dtype = torch.float32) -> Engine:
    """An engine whose model records graphs."""
    engine = open_engine(folder)

    class Recording(RecordingLlama):
        pass

    Recording.cuda = cuda
    model = Recording.from_module(load_module(folder, dtype, CPU, "eager"))
    assert model is not None
    model.end_tokens = engine.end_tokens
    engine.model = model
    return engine


def text(engine: Engine, number: int, **options: Any) -> list[int]:
    prompt = random_prompt(8000 + number, 20)
    tokens: list[int] = run(
        engine, prompt, max_tokens=16, ignore_end=True, **options
    ).tokens.tolist()
    return tokens


def tokens(count: int) -> ForwardBatch:
    return chain_batch(np.arange(count, dtype=np.int32), count - 1)


def in_a_cycle(*things: Any) -> None:
    """Leave things to the collector of garbage."""
    holder: list[Any] = list(things)
    holder.append(holder)


def test_the_stand_in_is_as_strict_as_cuda(cuda: CudaStandIn) -> None:
    """The control: a graph that is left to the collector spoils a recording."""
    old, new = StandInGraph(cuda), StandInGraph(cuda)
    old.compute = new.compute = lambda: None
    in_a_cycle(old)
    del old
    with pytest.raises(RuntimeError, match="Invalidated"), cuda.graph(new):
        gc.collect()
    assert cuda.stream == "recording"
    cuda.stream = "main"
    with (
        pytest.raises(RuntimeError, match="Invalidated"),
        cuda.graph(new),
        pytest.raises(RuntimeError, match="not permitted"),
    ):
        new.reset()


def test_texts_are_those_without_graphs(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    """Two graphs are recorded when the model is loaded, and none for a session."""
    engine = recording(folder, cuda)
    assert cuda.recorded == cuda.recordings == len(cuda.living) == 2
    session = engine.session()
    for number, expected in enumerate(answers):
        assert text(engine, number) == expected
        oracle = Oracle(np.array(expected, np.int32), number)
        assert text(engine, number, drafter=oracle, session=session) == expected
    assert cuda.recordings == len(cuda.living) == 2
    assert cuda.replays > 40
    assert engine.model.notice == ""


def test_graphs_of_an_earlier_model_are_not_freed_while_one_is_recorded(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    """Two number formats one after another, the first of them garbage."""
    first = recording(folder, cuda, torch.bfloat16)
    session = first.session()
    text(first, 0, session=session)
    in_a_cycle(first, session, first.model)
    del first, session
    cuda.on_compute = gc.collect
    second = recording(folder, cuda)
    assert text(second, 0) == answers[0]
    assert cuda.recorded == cuda.recordings == 4
    assert cuda.freed == 2
    assert second.model.notice == ""


def test_garbage_is_not_collected_while_one_is_recorded(folder: Path, cuda: CudaStandIn) -> None:
    seen: list[bool] = []
    cuda.on_compute = lambda: seen.append(gc.isenabled())
    recording(folder, cuda)
    gc.disable()
    try:
        recording(folder, cuda)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen
    assert not any(seen)


def test_a_model_is_freed_with_its_last_reference(folder: Path, cuda: CudaStandIn) -> None:
    """Not only when garbage is collected: it holds much memory of the device."""
    engine = recording(folder, cuda)
    gc.collect()
    gc.disable()
    try:
        cache = engine.model.new_cache(16)
        engine.model.forward(tokens(4), [cache])
        del cache, engine
        assert cuda.freed == 2
    finally:
        gc.enable()


def test_another_thread_may_drop_a_model_while_one_is_recorded(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    engines = [recording(folder, cuda)]

    def drop() -> None:
        thread = threading.Thread(target=engines.clear)
        thread.start()
        thread.join()

    cuda.on_compute = drop
    assert text(recording(folder, cuda), 1) == answers[1]
    assert not engines
    assert cuda.recorded == cuda.recordings == 4
    gc.collect()
    assert cuda.freed > 0


def fail_within(cuda: CudaStandIn) -> None:
    def spoil() -> None:
        cuda.is_invalid = True
        raise RuntimeError(NOT_PERMITTED)

    cuda.on_compute = spoil


def fail_at_its_end(cuda: CudaStandIn) -> None:
    def spoil() -> None:
        cuda.is_invalid = True

    cuda.on_compute = spoil


def fail_at_its_beginning(cuda: CudaStandIn) -> None:
    def spoil() -> None:
        raise RuntimeError(NOT_PERMITTED)

    cuda.on_begin = spoil


def fail_without_words(cuda: CudaStandIn) -> None:
    def spoil() -> None:
        raise RuntimeError

    cuda.on_compute = spoil


@pytest.mark.parametrize(
    "fail", [fail_within, fail_at_its_end, fail_at_its_beginning, fail_without_words]
)
def test_a_recording_that_fails_is_done_without_and_told_once(
    folder: Path,
    cuda: CudaStandIn,
    answers: list[list[int]],
    caplog: pytest.LogCaptureFixture,
    fail: Any,
) -> None:
    fail(cuda)
    with caplog.at_level(logging.WARNING):
        engine = recording(folder, cuda)
        for number, expected in enumerate(answers):
            assert text(engine, number) == expected
            oracle = Oracle(np.array(expected, np.int32), number)
            assert text(engine, number, drafter=oracle) == expected
    assert cuda.recordings == 1
    assert cuda.stream == "main"
    assert len(caplog.records) == 1
    assert engine.model.notice.count("CUDA graph") == 1
    assert "\n" not in engine.model.notice
    assert not recorded_graphs._retired


def test_what_was_recorded_goes_on_when_a_later_recording_fails(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    cuda.on_compute = lambda: fail_within(cuda)
    engine = recording(folder, cuda)
    assert text(engine, 0) == answers[0]
    assert (cuda.recordings, cuda.recorded) == (2, 1)
    assert cuda.replays > 0
    assert INVALIDATED.partition("(")[0].strip() in engine.model.notice


def test_another_model_goes_on_recording(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    fail_within(cuda)
    broken = recording(folder, cuda)
    cuda.on_compute = lambda: None
    sound = recording(folder, cuda)
    assert text(broken, 0) == text(sound, 0) == answers[0]
    assert cuda.recorded == 2
    assert sound.model.notice == ""


def test_a_device_that_is_full_is_told_as_such(folder: Path, cuda: CudaStandIn) -> None:
    """The model cannot be loaded then; the next one records again."""

    def spoil() -> None:
        cuda.is_invalid = True
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    cuda.on_compute = spoil
    with pytest.raises(MemoryError):
        recording(folder, cuda)
    assert cuda.stream == "main"
    cuda.on_compute = lambda: None
    engine = recording(folder, cuda)
    assert engine.model.notice == ""
    assert cuda.recorded == 2


def test_a_graph_that_cannot_be_freed_stops_nothing(
    folder: Path,
    cuda: CudaStandIn,
    answers: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = recording(folder, cuda)
    text(engine, 0)

    def refuse(_graph: StandInGraph) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(StandInGraph, "reset", refuse)
    with caplog.at_level(logging.WARNING):
        assert text(engine, 1) == answers[1]
        del engine
        gc.collect()
        assert text(recording(folder, cuda), 1) == answers[1]
    assert "not freed" in caplog.text
