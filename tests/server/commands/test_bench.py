"""``redraft bench``: what a user is told of his own machine and model, with a small model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsp_server.commands.cli.main import main

CODE = "".join(
    f"def f{n}(a, b):\n    c = a + {n}\n    d = b * c\n    return c - d\n\n\n" for n in range(40)
)


@pytest.mark.slow
def test_the_page_has_forwards_first_texts_and_both_speeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code.py").write_text(CODE)
    out = tmp_path / "out.json"
    options = ["--threads", "1", "--file", str(tmp_path / "code.py"), "--json", str(out)]
    assert main(["bench", *options]) == 0
    document = json.loads(out.read_text("utf-8"))
    assert {"1", "8", "64"} <= set(document["forward_ms"]["redraft"])
    assert set(document["first_text_s"]) == {"cold", "warm", "line", "ready"}
    plain, drafted = document["writing"]["redraft, no drafts"], document["writing"]["redraft"]
    assert plain["tokens_per_forward"] <= 1 < drafted["tokens_per_forward"]
    assert plain["tokens"] == drafted["tokens"], "drafts change no text"
    page = capsys.readouterr().out
    assert "no llama.cpp beside it: llama.cpp reads GGUF files alone" in " ".join(page.split())
    assert len(page.splitlines()) < 40, "one page"


def test_forwards_are_timed_by_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--threads", "1", "--context", "64", "--seconds", "0.1", "--json"]
    assert main(["bench", "forward", *options]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)["forward_ms"]["redraft"]
    assert figures["threads"] == 1
    assert 0 < figures["1"] < figures["64"]


@pytest.mark.parametrize(
    "wrong",
    [
        ["forward", "--context", "0"],
        ["forward", "--peer", "llama-cpp"],
        ["--file", "/none"],
    ],
    ids=" ".join,
)
def test_options_that_cannot_be(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *wrong]) == 1
    said = capsys.readouterr().err
    assert said.startswith("redraft: ")
    assert said.count("\n") == 1
