"""Renames through the real server: exactly the expected text, or a refusal, in every language."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rename_programs import INDENTATIONS, TEMPLATES, rename_program
from seeds import Amount
from text_cases import data_cases

from .client import Driver
from .test_edits import applied

Connect = Callable[..., Driver]


def test_renames_through_the_server(connect: Connect, workspace: Path, amount: Amount) -> None:
    """Programs by chance, of a few kinds of indentation for each language; at least 95 % of each
    language and indentation come exact."""
    driver = connect()
    rounds, most = amount(1, 9), amount(1, len(INDENTATIONS))
    seed = random.randrange(1 << 30)
    refused: Counter[tuple[str, str]] = Counter()
    for language in TEMPLATES:
        chosen = random.Random(f"{seed}/{language}").sample(sorted(INDENTATIONS), most)
        for indentation in chosen:
            for number in range(rounds):
                case = f"{seed}/{language}/{indentation}/{number}"
                program = rename_program(language, indentation, random.Random(case))
                uri = (workspace / case.replace("/", "_").replace(" ", "_")).as_uri()
                driver.open(uri, program.text, language)
                end = {"line": program.text.count("\n") + 1, "character": 0}
                params = {
                    "textDocument": {"uri": uri, "version": 1},
                    "range": {"start": {"line": 0, "character": 0}, "end": end},
                    "instruction": program.instruction,
                }
                answer = driver.answer(driver.start("redraft/edit", params))
                driver.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
                if "error" in answer:
                    print(case, answer["error"]["message"])
                    refused[language, indentation] += 1
                    continue
                got = applied(program.text, answer["result"]["hunks"])
                assert got == program.wanted, f"{case}: {program.instruction}"
                assert not any(hunk["note"] for hunk in answer["result"]["hunks"])
    assert all(count <= rounds * 0.05 for count in refused.values()), (seed, refused)


def test_an_instruction_comment_behind_code_keeps_the_code(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), (workspace / "behind.py").as_uri()
    text = "def f(price):  # redraft: rename price to cost\n\treturn price\n\n\ny = 1\n"
    driver.open(uri, text)
    where = {"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 2}}
    params = {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": []}}
    actions = driver.request("textDocument/codeAction", params)
    action = next(one for one in actions if "rename price" in one["title"])
    resolved = driver.request("codeAction/resolve", action)
    (changes,) = resolved["edit"]["documentChanges"]
    hunks = [{**one, "oldText": ""} for one in changes["edits"]]
    assert applied(text, hunks) == "def f(cost):\n\treturn cost\n\n\ny = 1\n"


def test_what_other_files_use_is_renamed_there_too(connect: Connect, workspace: Path) -> None:
    shapes, text = workspace / "shapes_of.py", "class Rect:\n    pass\n"
    other, unsaved = workspace / "cart_of.py", "\n\nfrom shapes_of import Rect\n\nRect()\n"
    shapes.write_text(text)
    other.write_text("from shapes_of import Rect\n")
    (workspace / "page_of.py").write_text("import shapes_of\n\nshapes_of.Rect()\n")
    driver = connect()
    driver.open(shapes.as_uri(), text)
    driver.open(other.as_uri(), unsaved)
    lines = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    edit = {"uri": shapes.as_uri(), "range": lines, "instruction": "rename Rect to Box"}
    told = driver.request("redraft/edit", edit)
    assert "Rect stays in other files" in told["warning"]
    assert len(told["edit"]["documentChanges"]) == 1
    driver.request("workspace/executeCommand", {"command": "redraft.runEdit", "arguments": [edit]})
    changes = {
        Path(each["textDocument"]["uri"]).name: (
            each["textDocument"]["version"],
            [hunk["range"]["start"]["line"] for hunk in each["edits"]],
        )
        for each in driver.applied[-1]["edit"]["documentChanges"]
    }
    expected = {"shapes_of.py": (1, [0]), "cart_of.py": (1, [2, 4]), "page_of.py": (None, [2])}
    assert changes == expected
    (workspace / "page_of.py").write_text("from shapes_of import Rect\n\nBox = Rect()\n")
    command = {"command": "redraft.runEdit", "arguments": [edit]}
    refused = driver.answer(driver.start("workspace/executeCommand", command))
    assert "Box is in use in page_of.py" in refused["error"]["message"]


@data_cases()
def test_what_cannot_be_done_is_refused_and_nothing_applied(
    connect: Connect, workspace: Path, instruction: str, reason: str
) -> None:
    driver, uri = connect(), (workspace / "refused.py").as_uri()
    driver.open(uri, "def f(price, tax):\n\treturn price * tax\n")
    lines = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
    argument = {"uri": uri, "version": 1, "range": lines, "instruction": instruction}
    edit = driver.answer(driver.start("redraft/edit", argument))
    command = {"command": "redraft.runEdit", "arguments": [argument]}
    run = driver.answer(driver.start("workspace/executeCommand", command))
    assert reason in edit["error"]["message"]
    assert reason in run["error"]["message"]
    assert driver.applied == []
