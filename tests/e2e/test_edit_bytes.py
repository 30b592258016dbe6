"""Edits through the real server leave every byte alone that they are not about."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seeds import Amount
from text_cases import data_beside

from .client import Driver

Connect = Callable[..., Driver]
STRANGE = [
    "😀", "€", "é", "e\u0301", "日本", "\x07", "\u2028", "\u2029", "\u200b", "\u202e", "\u2066",
    "\u00a0", "\u3000", "\x7f", "𝒳", "\U000e0041", "\U0010ffff", "ﬀ", "цена", "x1", "<1>",
    "👩\u200d💻", "\ue000", "\x85", "\ufeff",
]  # fmt: skip
ENDS = ["\n", "\r\n", "\r"]
INDENTS = ["    ", "  ", "\t"]
PYTHON = """\
def total(prices, tax):
>\"\"\"Sum of the prices.\"\"\"
>for price in prices:
>>print(price, '¤')  # ¤ one ¤ by one
>return sum(prices) * tax  # ¤
"""
DATA = data_beside(__file__)
OTHERS = DATA["OTHERS"]


def dressed(rng: random.Random, template: str) -> str:
    """A program with strange characters in its comments and strings, in some layout."""
    indent = rng.choice(INDENTS)
    text = re.sub("^>+", lambda found: indent * len(found[0]), template, flags=re.MULTILINE)
    text = re.sub("¤", lambda _: rng.choice(STRANGE) * rng.randrange(1, 3), text)
    lines = text.split("\n")
    if rng.random() < 0.3:
        lines = [line + rng.choice(["", " ", "\t"]) if line else line for line in lines]
    ends = ENDS if rng.random() < 0.2 else [rng.choice(ENDS)]
    text = "".join(line + rng.choice(ends) for line in lines[:-1])
    return "\ufeff" + text if rng.random() < 0.15 else text


def put_in(text: str, hunks: list[dict[str, Any]]) -> str:
    """The hunks put in, by lines and columns of UTF-16 as the protocol counts them."""
    lines = [*re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text), ""]

    def offset(place: dict[str, int]) -> int:
        units = lines[place["line"]].encode("utf-16-le", "surrogatepass")
        before = units[: 2 * place["character"]].decode("utf-16-le", "surrogatepass")
        return sum(map(len, lines[: place["line"]])) + len(before)

    for hunk in reversed(hunks):
        start, end = offset(hunk["range"]["start"]), offset(hunk["range"]["end"])
        assert text[start:end] == hunk["oldText"]
        text = text[:start] + hunk["newText"] + text[end:]
    return text


def edited(
    driver: Driver, uri: str, text: str, language: str, instruction: str
) -> tuple[str | None, str]:
    """The text after an edit of all of it; None and the reason where it is refused."""
    driver.open(uri, text, language)
    lines = len(re.findall(r"\r\n|\n|\r", text))
    params = {
        "textDocument": {"uri": uri, "version": 1},
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": lines, "character": 0}},
        "instruction": instruction,
    }
    answer = driver.answer(driver.start("redraft/edit", params))
    driver.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    if "error" in answer:
        return None, answer["error"]["message"]
    return put_in(text, answer["result"]["hunks"]), ""


def test_edits_through_the_server_keep_all_other_bytes(
    connect: Connect, workspace: Path, amount: Amount
) -> None:
    """Renames of two places in Python, and of one in other languages."""
    driver = connect()
    rounds = amount(5, 42)
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    done: Counter[str] = Counter()
    for number in range(rounds):
        for language, template in {"python": PYTHON, **OTHERS}.items():
            text = dressed(rng, template)
            uri = (workspace / f"bytes_{seed}_{number}.{language}").as_uri()
            old, new = ("tax", "rate") if language == "python" else ("target", "goal")
            instruction, wanted = f"rename {old} to {new}", text.replace(old, new)
            got, reason = edited(driver, uri, text, language, instruction)
            assert got in (None, wanted), f"seed {seed}, {language}: {text!r} became {got!r}"
            done[language] += got == wanted
            if reason:
                print(f"{language} refused: {reason}: {text!r}")
    few = {language for language in done if done[language] < 0.95 * rounds - 1}
    assert not few, (seed, done)
