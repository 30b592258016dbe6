"""Adaptive tokens save forwards where the workspace knows little."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_model import ADAPTIVE_TOKENS, SMALL_MODEL
from steady_costs import DTYPE, THREADS, hold_costs, keep_costs

from accel.files.adaptive_tokens import FILE
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.contract.options import EngineOptions

CODE = """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        \n"""
CURSORS = [CODE.index("\n\n    def pop"), len(CODE) - 1]


def test_adaptive_tokens_save_forwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = tmp_path / "model"
    shutil.copytree(SMALL_MODEL, model)
    shutil.copy(ADAPTIVE_TOKENS, model / FILE)
    keep_costs(model)
    texts, forwards = {}, {}
    for use in ("off", "auto"):
        service = EngineService(
            EngineOptions(
                path=str(model), dtype=DTYPE, threads=THREADS, common=False, adaptive_tokens=use
            )
        )
        service.load()
        hold_costs(service.model.engines)
        jobs = [CompletionJob("", "a.py", CODE[:end], CODE[end:]) for end in CURSORS]
        results = [service.write(job) for job in jobs]
        service.close()
        texts[use] = [result.text for result in results]
        forwards[use] = sum(result.forwards for result in results)
    assert texts["auto"] == texts["off"]
    assert forwards["auto"] < forwards["off"]
