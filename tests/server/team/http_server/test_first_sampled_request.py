"""On a new machine, what a sampled request calls is compiled behind the first answers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from served import serving
from small_model import SMALL_MODEL

COMPILED_S = 1200.0
GREEDY = {"prompt": "def total(values):\n    ", "max_tokens": 16}
SAMPLED = {**GREEDY, "temperature": 0.8, "top_p": 0.9, "seed": 1}


def compiled(folder: Path, name: str = "") -> set[str]:
    """Names of the functions' forms that were compiled."""
    return {file.name for file in folder.rglob(f"{name}*.nbc")}


@pytest.mark.long
@pytest.mark.timeout(2 * COMPILED_S)
def test_the_first_sampled_request_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    with serving(tmp_path, SMALL_MODEL) as server:
        assert server.post("/v1/completions", GREEDY).status_code == 200
        ends = time.monotonic() + COMPILED_S
        while not compiled(cache, "gumbel_sampling.draw-"):
            assert time.monotonic() < ends
            time.sleep(0.5)
        before = compiled(cache)
        answer = server.post("/v1/completions", SAMPLED)
        assert answer.status_code == 200, answer.text
        assert compiled(cache) == before
