"""Contexts of a server live as long as there is memory for them."""

from __future__ import annotations

import pytest

from lsp_server.engine import caches
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import GenerateJob

PROMPTS = 24
BEGINNING = "".join(f"Rule {number}: answer with code alone.\n" for number in range(12))


def jobs(owner: str, beginning: str) -> list[GenerateJob]:
    return [
        GenerateJob(
            text=f"{beginning}Task {number}: "
            + " ".join(f"item{number * 31 + word}" for word in range(40)),
            owner=owner,
            max_tokens=2,
        )
        for number in range(PROMPTS)
    ]


@pytest.mark.parametrize("beginning", ["", BEGINNING], ids=["unlike", "alike"])
def test_an_evaluation_in_turn_behind_one_key_computes_its_prompts_once(
    service: EngineService, beginning: str
) -> None:
    asked = jobs(f"key {beginning[:4]}", beginning)
    first = [service.write(job) for job in asked]
    second = [service.write(job) for job in asked]
    assert [result.text for result in second] == [result.text for result in first]
    for result in second:
        assert result.prompt_tokens_reused > 0.4 * result.prompt_tokens > 0


def test_nobody_else_has_what_a_key_computed(service: EngineService) -> None:
    for owner in ("one", "other"):
        results = [service.write(job) for job in jobs(owner, "")[: caches.READY_SESSIONS + 2]]
        assert not results[0].prompt_tokens_reused


def test_caches_stay_within_their_budget_and_the_status_says_so(service: EngineService) -> None:
    engine = service.engine
    before, session = engine.kv_budget, engine.session().cache.nbytes
    engine.kv_budget = 4 * session
    try:
        for job in jobs("small", ""):
            service.write(job)
            assert engine.kv_bytes <= engine.kv_budget + 2 * session
        status = service.status()
        assert 0 < status.kv_bytes == engine.kv_bytes
        assert status.kv_budget == engine.kv_budget
    finally:
        engine.kv_budget = before
