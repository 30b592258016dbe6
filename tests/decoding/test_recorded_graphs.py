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

from accel.batch import ForwardBatch, chain_batch
from accel.engine import Engine
from accel.models import recorded_graphs
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
    model = RecordingLlama.from_module(load_module(folder, dtype, CPU, "eager"))
    assert isinstance(model, RecordingLlama)
    model.cuda = cuda
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
    engine = recording(folder, cuda)
    session = engine.session()
    for number, expected in enumerate(answers):
        assert text(engine, number) == expected
        oracle = Oracle(np.array(expected, np.int32), number)
        assert text(engine, number, drafter=oracle, session=session) == expected
    assert cuda.recorded == cuda.recordings > 4
    assert cuda.replays > 40
    assert engine.model.notice == ""


def test_a_step_is_recorded_once(folder: Path, cuda: CudaStandIn) -> None:
    engine = recording(folder, cuda)
    session = engine.session()
    text(engine, 0, session=session)
    recorded = cuda.recorded
    for _ in range(3):
        text(engine, 0, session=session)
    assert cuda.recorded == recorded
    assert len(cuda.living) == recorded


def test_graphs_of_an_earlier_cache_are_not_freed_while_one_is_recorded(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    """The collector runs in the middle of every recording, and finds the caches before."""
    engine = recording(folder, cuda)
    cuda.on_compute = gc.collect
    for number, expected in enumerate(answers):
        session = engine.session()
        assert text(engine, number, session=session) == expected
        in_a_cycle(session)
        del session
    assert cuda.recorded == cuda.recordings
    assert not cuda.is_invalid
    gc.collect()
    assert cuda.freed == cuda.recorded
    assert not recorded_graphs._retired


def test_graphs_of_an_earlier_model_are_not_freed_while_one_is_recorded(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    """Two number formats one after another, the first of them garbage."""
    first = recording(folder, cuda, torch.bfloat16)
    session = first.session()
    text(first, 0, session=session)
    before = cuda.recorded
    in_a_cycle(first, session, first.model)
    del first, session
    cuda.on_compute = gc.collect
    second = recording(folder, cuda)
    assert text(second, 0) == answers[0]
    assert cuda.recorded == cuda.recordings > before
    assert cuda.freed >= before
    assert second.model.notice == ""


def test_garbage_is_not_collected_while_one_is_recorded(folder: Path, cuda: CudaStandIn) -> None:
    engine = recording(folder, cuda)
    seen: list[bool] = []
    cuda.on_compute = lambda: seen.append(gc.isenabled())
    text(engine, 0)
    gc.disable()
    try:
        text(engine, 1)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen
    assert not any(seen)


def test_a_cache_is_freed_with_its_last_reference(folder: Path, cuda: CudaStandIn) -> None:
    """Not only when garbage is collected: it holds much memory of the device."""
    model = recording(folder, cuda).model
    gc.collect()
    gc.disable()
    try:
        cache = model.new_cache(16)
        for count in (1, 4, 20):
            model.forward(tokens(count), [cache])
        assert (cuda.recorded, cuda.freed) == (3, 0)
        del cache
        assert cuda.freed == 3
    finally:
        gc.enable()


def test_a_cache_that_grows_frees_its_graphs(folder: Path, cuda: CudaStandIn) -> None:
    model = recording(folder, cuda).model
    cuda.on_compute = gc.collect
    cache = model.new_cache(16)
    for grown in range(4):
        for count in (1, 4, 20):
            model.forward(tokens(count), [cache])
        assert cuda.freed == 3 * grown
        cache.trim(0)
        cache.pretend(1024 * 2**grown)
    assert cuda.recorded == cuda.recordings == 12
    del cache
    assert cuda.freed == 12


def test_another_thread_may_drop_graphs_while_one_is_recorded(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    engine = recording(folder, cuda)
    sessions = [engine.session()]
    text(engine, 0, session=sessions[0])

    def drop() -> None:
        thread = threading.Thread(target=sessions.clear)
        thread.start()
        thread.join()

    cuda.on_compute = drop
    assert text(engine, 1) == answers[1]
    assert not sessions
    assert cuda.recorded == cuda.recordings
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
    engine = recording(folder, cuda)
    fail(cuda)
    with caplog.at_level(logging.WARNING):
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
    engine = recording(folder, cuda)
    session = engine.session()
    assert text(engine, 0, session=session) == answers[0]
    fail_within(cuda)
    assert text(engine, 1) == answers[1]
    replays = cuda.replays
    assert text(engine, 0, session=session) == answers[0]
    assert cuda.replays > replays
    assert INVALIDATED.partition("(")[0].strip() in engine.model.notice


def test_another_model_goes_on_recording(
    folder: Path, cuda: CudaStandIn, answers: list[list[int]]
) -> None:
    broken, sound = recording(folder, cuda), recording(folder, cuda)
    fail_within(cuda)
    assert text(broken, 0) == answers[0]
    cuda.on_compute = lambda: None
    assert text(sound, 0) == answers[0]
    assert cuda.recorded > 0
    assert sound.model.notice == ""


def test_a_device_that_is_full_is_told_as_such(folder: Path, cuda: CudaStandIn) -> None:
    """The engine frees memory for the request then; the next one records again."""
    engine = recording(folder, cuda)

    def spoil() -> None:
        cuda.is_invalid = True
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    cuda.on_compute = spoil
    cache = engine.model.new_cache(64)
    with pytest.raises(MemoryError):
        engine.model.forward(tokens(4), [cache])
    assert cuda.stream == "main"
    assert engine.model.notice == ""
    cuda.on_compute = lambda: None
    engine.model.forward(tokens(4), [cache])
    assert cuda.recorded == 1


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
        gc.collect()
        assert text(engine, 1) == answers[1]
        gc.collect()
    assert "not freed" in caplog.text
