"""What of the model's text is shown: golden cases."""

from __future__ import annotations

import pytest

from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.editor.completion.request import CompletionRequest

BLOCK = "def f(items):\n    for item in items:\n        "

CASES = {
    # name: (prefix, text, suffix, shown)
    "as it is": ("x = ", "1 + 2", "\n", "1 + 2"),
    "trailing blanks go": ("x = ", "1   \n\n", "\n", "1"),
    "only blanks are nothing": ("x = ", "   \n  ", "\n", ""),
    "windows line ends": ("a = ", "1\r\nb = 2", "\n", "1\nb = 2"),
    "a line of a loop is shown once": ("", "a = 1\na = 1\na = 1\na = 1\n", "", "a = 1"),
    "a pair of lines that loops": ("", "a()\nb()\n" * 4, "", "a()\nb()"),
    "two equal lines are no loop": ("", "})\n})", "", ""),
    "two equal calls are no loop": ("", "step()\nstep()", "", "step()\nstep()"),
    "a phrase that loops": ("x = ", "foo + bar + foo + bar + foo + bar + foo + bar + ", "\n",
                            "foo + bar +"),
    "a row of dashes is no loop": ("# ", "-" * 40, "\n", "-" * 40),
    "the lines above once more": ("a = load()\nb = a + 1\n", "a = load()\nb = a + 1", "", ""),
    "the rest of the line is not doubled": ("print(", "value)", ")\n", "value"),
    "a whole rest of line": ("foo(a", ", b) + 1", ") + 1\n", ", b"),
    "the middle of a call stays on its line": ("foo(", "a, b\n    c", " + d)\n", "a, b"),
    "closed by the editor": ('x = "', 'hello"', '"\n', "hello"),
    "the next line is not doubled": (BLOCK, "total += item\n    return total",
                                     "\n    return total\n", "total += item"),
    "only the next line": ("x = 1\n", "y = compute(x)", "\ny = compute(x)\n", ""),
    "a next line that was cut off": (BLOCK, "use(item)\n    result = finish(items)\n    return res",
                                     "\n    result = finish(items)\n    return result\n",
                                     "use(item)"),
    "a short next line may come twice": ("if a:\n    ", "b()\nelse:\n    c()",
                                         "\nelse:\n    d()\n", "b()\nelse:\n    c()"),
    "a bracket that closes nothing": ("x = 1", " + 2)\nfoo", "\n", " + 2"),
    "a bracket that closes what is open": ("f(1", ", 2)", "\n", ", 2)"),
    "a bracket of a line above": ("f(\n    1,\n", "    2,\n)", "\n", "    2,\n)"),
    "a bracket that the line closes itself": ("f(1", ", 2))", ")\n", ", 2"),
    "the wrong kind of bracket": ("f(1", ", 2]", "\n", ", 2"),
    "brackets in strings do not count": ("x = ", '")" + f("(")', "\n", '")" + f("(")'),
    "brackets in comments do not count": ("x = 1", "  # :)", "\n", "  # :)"),
    "indentation inside stays": (BLOCK, "if item:\n            use(item)", "\n",
                                 "if item:\n            use(item)"),
    "hidden characters are cut": ("x = ", "1  # \u202egnihton", "\n", "1  #"),
    "hidden characters of the document stay": ('a = "\u200b"\nb = ', '"\u200b"', "\n",
                                               '"\u200b"'),
    "unicode": ("name = ", '"𝄞é"', "\n", '"𝄞é"'),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    prefix, text, suffix, shown = CASES[name]
    assert shown_text(text, prefix, suffix) == shown


@pytest.mark.parametrize("name", CASES)
def test_filtering_again_changes_nothing(name: str) -> None:
    prefix, text, suffix, _ = CASES[name]
    once = shown_text(text, prefix, suffix)
    assert shown_text(once, prefix, suffix) == once


@pytest.mark.parametrize(
    ("before", "after", "several"),
    [
        ("", "", True),
        ("    ", "", True),
        ("if x:", "", True),
        ("call(", ")", True),
        ("x = fo", "", False),
        ("    ", "existing code", False),
        ("items = [", "]", True),
        ("const f = () =>", "", True),
    ],
)
def test_several_lines_only_where_a_block_may_follow(
    before: str, after: str, several: bool
) -> None:
    ask = CompletionRequest("d", "d.py", "", "python", f"x\n{before}", f"{after}\nx")
    assert ask.wants_several_lines is several
