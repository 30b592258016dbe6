"""The demo with the default model: every answer parses and does what was asked."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import frozen_corpus
import pytest
from text_cases import data_beside

from lsp_server.commands.demo.places import BAKERY

DATA = data_beside(__file__)

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

COMPLETED = DATA["COMPLETED"]
"""Lines that the demo types and the model ends as they were written."""
EDITED = DATA["EDITED"]
"""By instruction, what changes in the file, and nothing else."""
RENAME = "rename found to open_orders"


def shown(model: Path, out: Path, *more: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "lsp_server", "demo", *more, "--model", str(model)]
    subprocess.run([*command, "--json", str(out)], check=True, timeout=800)
    answers: list[dict[str, Any]] = json.loads(out.read_text())
    return answers


def edited(file: str, instruction: str) -> str:
    text = (BAKERY / f"{file}.txt").read_text()
    if instruction == RENAME:
        head, function, tail = re.split("(?=    def unpaid)|(?=    def by_customer)", text)
        return head + function.replace("found", "open_orders") + tail
    for before, after in EDITED[instruction]:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def test_the_bakery_is_completed_and_edited_as_asked(default_model: Path, tmp_path: Path) -> None:
    answers = shown(default_model, tmp_path / "shown.json")
    assert [one["refusal"] for one in answers if one["refusal"]] == []
    lines, instructions = [], []
    for answer in answers:
        ast.parse(answer["text"])
        file, _, instruction = answer["title"].partition(", ")
        file, _, number = file.partition(":")
        if instruction:
            instructions.append(instruction)
            assert answer["text"] == edited(file, instruction), instruction
        else:
            line = answer["text"].splitlines()[int(number) - 1].strip()
            assert line in COMPLETED[file]
            assert answer["text"] == (BAKERY / f"{file}.txt").read_text()
            lines.append(line)
    assert sorted(lines) == sorted(line for each in COMPLETED.values() for line in each)
    assert instructions == [RENAME, *EDITED]


def test_answers_on_other_code_parse(default_model: Path, tmp_path: Path) -> None:
    folder = str(frozen_corpus.FOLDER)
    answers = shown(default_model, tmp_path / "shown.json", folder, "--places", "4", "--edits", "6")
    assert len(answers) == 10
    for answer in answers:
        ast.parse(answer["text"])
