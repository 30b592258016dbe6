"""A model is ready before anything is warmed up, and what warms it leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_model import SMALL_MODEL

from lsp_server.engine import warming
from lsp_server.engine.service import EngineService
from lsp_server.engine.warming import CompiledRecord
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.contract.options import EngineOptions


@pytest.fixture
def service() -> Iterator[EngineService]:
    made = EngineService(
        EngineOptions(path=str(SMALL_MODEL), dtype="fp32", threads=1, common=False)
    )
    made.load()
    yield made
    made.close()


def test_nothing_is_computed_before_a_request_or_a_quiet_moment(service: EngineService) -> None:
    assert not list(service.caches.sessions)
    service.warm_up(lambda: True)
    assert len(service._cold_parts) == len(service._parts_to_warm())
    job = CompletionJob("", "a.py", "def mean(values):\n    return ", "\n", max_tokens=4)
    cold = service.write(job)
    service.warm_up()
    assert not service._cold_parts
    assert service.write(job).text == cold.text


def test_warming_up_leaves_nothing_behind(service: EngineService) -> None:
    service.warm_up()
    assert not list(service.caches.sessions)
    assert not list(service.caches.drafters)
    assert service.caches.history is not None
    assert not service.caches.history.knows("")


def test_something_that_comes_ends_the_warming_up_after_a_part(service: EngineService) -> None:
    asked = iter([False, False, True])
    service.warm_up(lambda: next(asked))
    assert len(service._cold_parts) == len(service._parts_to_warm()) - 2


def test_the_record_of_what_is_compiled_holds_for_one_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    index = tmp_path / "function.nbi"
    assert not CompiledRecord("a").is_complete
    CompiledRecord("a").write([str(index)])
    assert not CompiledRecord("a").is_complete
    index.write_bytes(b"")
    assert CompiledRecord("a").is_complete
    assert not CompiledRecord("b").is_complete
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setattr(warming, "_SOURCES", [source])
    CompiledRecord("a").write([str(index)])
    assert CompiledRecord("a").is_complete
    (source / "changed.py").write_text("x = 1\n")
    assert not CompiledRecord("a").is_complete
