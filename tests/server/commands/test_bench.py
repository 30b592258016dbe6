"""``redraft bench``: what a user is told of his own machine and model, with a small model."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--file", "/none"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("redraft: ")
    assert said.count("\n") == 1
