"""Answers of chat models as people read them: thinking, fences, several blocks, none, diffs."""

from __future__ import annotations

import pytest
from answer_texts import edited, fenced

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.answer_blocks import fenced_blocks
from lsp_server.tasks.editing.answers import code_of_answer, code_so_far

OLD = (
    "def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n"
    "    return result\n"
)
NEW = OLD.replace("result", "whole")
ASKED = "use whole in place of result everywhere"


def behind(mark: str, text: str) -> str:
    """The text with a mark before every line."""
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


READ = {
    "think": f"<think>\nFirst idea:\n```python\ndef total(prices):\n    return sum(prices)\n"
    f"```\nNo, keep the loop.\n</think>\n\n```python\n{NEW}```\n",
    "begun": f"First idea:\n```python\ndef total(prices):\n    return sum(prices)\n```\nNo.\n"
    f"</think>\n\n```python\n{NEW}```\n",
    "begun open fence": f"First idea:\n```python\ndef total(prices):\n    return sum(prices)\n"
    f"No.\n</think>\n\n```python\n{NEW}```\n",
    "thinking": f"<thinking>hm ```x```</thinking>```python\n{NEW}```\n",
    "reasoning": f"<reasoning>\nx\n</reasoning>\n```python\n{NEW}```\n",
    "mistral": f"[THINK]x\n```python\n{OLD}```\n[/THINK]\n```python\n{NEW}```\n",
    "harmony": f"<|channel|>analysis<|message|>x ```python\n"
    f"{OLD}```<|end|><|start|>assistant<|channel|>final<|message|>```python\n{NEW}```<|return|>",
    "harmony words": f"analysisWe need to rename.assistantfinal```python\n{NEW}```",
    "seed": f"<seed:think>x</seed:think>```python\n{NEW}```",
    "kimi": f"◁think▷x◁/think▷```python\n{NEW}```",
    "cohere": f"<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>```python\n"
    f"{NEW}```<|END_RESPONSE|>",
    "granite": f"Here is my thought process:\nx\n```python\n{OLD}```\nHere is my response:\n"
    f"```python\n{NEW}```",
    "twice": f"<think>a</think>\nSure.\n<think>b\n```\nzz\n```\n</think>\n```python\n{NEW}```",
    "mention": f"<think>I must end with </think> then\n```python\nx=1\n```\n</think>\n"
    f"```python\n{NEW}```",
    "answer tag": f"<think>x</think>\n<answer>\n{NEW}</answer>",
    "indented": "1. Here it is:\n   ```python\n" + behind("   ", NEW) + "   ```\n",
    "list same line": "1. ```python\n" + behind("   ", NEW) + "   ```\n",
    "- tab": "-\t```python\n" + behind("    ", NEW) + "    ```\n",
    "quote": "> ```python\n" + behind("> ", NEW) + "> ```\n",
    "tilde": f"~~~python\n{NEW}~~~\n",
    "tilde5": f"~~~~~ python\n{NEW}~~~~~\n",
    "longer": f"`````python\n{NEW}`````\n",
    "longer opened, short closed": f"````python\n{NEW}```\n",
    "longer closed": f"```python\n{NEW}`````\n",
    "sentence": f"Here is the code: ```python\n{NEW}```\nDone.",
    "marks": f"The ```result``` variable becomes ```whole```:\n\n```python\n{NEW}```\n",
    "behind": f"```python\n{NEW.rstrip()}```",
    "behind then prose": f"```python\n{NEW.rstrip()}```\nI renamed it.\n```python\n"
    f"print(total([1]))\n```\n",
    "behind blank": f"```python\n{NEW.rstrip()} ```\nI renamed.",
    "unclosed": f"```python\n{NEW}",
    "unclosed two": f"```python\nprint(1)\n```python\n{NEW}```",
    "several usage": f"```python\n{NEW}```\nUsage:\n```python\nprint(total([1, 2]))\n```",
    "several first old": f"Before:\n```python\n{OLD}```\nAfter:\n```python\n{NEW}```",
    "several after first": f"After:\n```python\n{NEW}```\nBefore:\n```python\n{OLD}```",
    "several draft": f"```python\n{NEW.replace('whole', 'sum')}```\nWait, better:\n```python\n"
    f"{NEW}```",
    "several alt": f"```python\n{NEW}```\nAlternatively:\n```python\n"
    f"{NEW.replace('whole', 'sum')}```",
    "shell first": f"```sh\npip install x\n```\n```python\n{NEW}```\n```text\n6\n```",
    "snippet": f"The line ```result = 0``` becomes\n```python\nwhole = 0\n```\nso all of it:\n"
    f"```python\n{NEW}```",
    "none": NEW,
    "none prose": f"Here is the edited code:\n\n{NEW}\nI renamed the variable.",
    "diff": "```diff\n--- a/a.py\n+++ b/a.py\n@@ -1,5 +1,5 @@\n def total(prices):\n"
    "-    result = 0\n+    whole = 0\n     for price in prices:\n-        result += price\n"
    "-    return result\n+        whole += price\n+    return whole\n```",
    "diff bare": "--- a/a.py\n+++ b/a.py\n@@ -1,5 +1,5 @@\n def total(prices):\n"
    "-    result = 0\n+    whole = 0\n     for price in prices:\n-        result += price\n"
    "-    return result\n+        whole += price\n+    return whole\n",
    "diff no head": "```diff\n-    result = 0\n+    whole = 0\n     for price in prices:\n"
    "-        result += price\n-    return result\n+        whole += price\n+    return whole\n```",
    "diff hunks": "```diff\n@@ @@\n-    result = 0\n+    whole = 0\n@@ @@\n"
    "-        result += price\n-    return result\n+        whole += price\n+    return whole\n```",
    "search": "```\n<<<<<<< SEARCH\n    result = 0\n=======\n    whole = 0\n>>>>>>> REPLACE\n"
    "<<<<<<< SEARCH\n        result += price\n    return result\n=======\n"
    "        whole += price\n    return whole\n>>>>>>> REPLACE\n```",
    "patch": "*** Begin Patch\n*** Update File: a.py\n@@ def total(prices):\n-    result = 0\n"
    "+    whole = 0\n     for price in prices:\n-        result += price\n-    return result\n"
    "+        whole += price\n+    return whole\n*** End Patch",
    "crlf": f"```python\n{NEW}```\n".replace("\n", "\r\n"),
}


FURTHER = {
    "title": f'```python title="a.py"\n{NEW}```',
    "braces": f"```{{.python .numberLines}}\n{NEW}```",
    "path": f"```python:src/a.py\n{NEW}```",
    "no lang": f"```\n{NEW}```",
    "upper": f"```Python\n{NEW}```",
    "bold before": f"**Updated code:**\n```python\n{NEW}```",
    "heading": f"### Edited\n\n```python\n{NEW}```\n\n### Notes\n- renamed `result`\n- no more",
    "tilde closed with backticks": f"~~~python\n{NEW}```\nDone",
    "2 space indented": "  ```python\n" + behind("  ", NEW) + "  ```",
    "indented open only": "   ```python\n" + NEW + "   ```",
    "tab indented": "\t```python\n" + behind("\t", NEW) + "\t```",
    "nested list": "1. a\n   - b:\n     ```python\n" + behind("     ", NEW) + "     ```\n",
    "fence then text same line": f"```python\n{NEW}``` This renames it.",
    "thinking upper": f"<THINK>x</THINK>\n```python\n{NEW}```",
    "thought tag": f"<thought>\n```python\n{OLD}```\n</thought>\n```python\n{NEW}```",
    "thinking in md": f"**Thinking:** I rename.\n\n```python\n{NEW}```",
    "empty think": f"<think>\n\n</think>\n\n```python\n{NEW}```",
    "think no newline": f"<think>x</think>{NEW}",
    "leading blank lines in block": f"```python\n\n\n{NEW}\n\n```",
    "zero width": f"\ufeff```python\n{NEW}```",
    "windows": f"```python\r\n{NEW}```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
    "html pre": f"<pre><code>{NEW}</code></pre>",
    "old then new then test": f"Original:\n```python\n{OLD}```\nNew:\n```python\n{NEW}```\nTest:\n"
    f"```python\nassert total([1]) == 1\n```\nOutput:\n```\n1\n```",
    "signature only snippet first": f"Change\n```python\nresult = 0\n```\nto\n```python\n"
    f"whole = 0\n```\nFull:\n```python\n{NEW}```",
    "special token end": f"```python\n{NEW}```<|im_end|>",
    "eos text": f"```python\n{NEW}```\n</s>",
    "start of message": f"<|start_header_id|>assistant<|end_header_id|>\n\n```python\n{NEW}```",
}


@pytest.mark.parametrize("answer", FURTHER.values(), ids=FURTHER)
def test_further_answers_that_people_read(answer: str) -> None:
    assert edited(OLD, answer, ASKED) == NEW


@pytest.mark.parametrize("answer", READ.values(), ids=READ)
def test_the_code_of_an_answer(answer: str) -> None:
    assert edited(OLD, answer, ASKED) == NEW


REFUSED = {
    "diff misfit": "```diff\n@@ -1,2 +1,2 @@\n-    reslt = 0\n+    whole = 0\n```",
    "think open": "<think>\nFirst\n```python\nx\n```\n",
    "refusal": "I'm sorry, I cannot total prices.",
    "empty": "",
    "a diff for two places": fenced("@@ @@\n-a\n+b\n", "diff"),
    "only an example": "Use it so:\n```sh\nls\n```",
    "two parts": fenced(NEW[:39]) + "\nand\n" + fenced(NEW[39:]),
    "thinking without end in channels": "<|channel|>analysis<|message|>We need to",
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
def test_an_answer_that_is_not_clear_is_refused(answer: str) -> None:
    with pytest.raises(EditRefused):
        edited(OLD, answer, ASKED)


DIFFS: dict[str, tuple[str, str, str]] = {
    "a hunk with numbers": ("a\nb\na\nb\n", "@@ -4,1 +4,1 @@\n-b\n+c\n", "a\nb\na\nc\n"),
    "an added line": ("a\nb\n", "@@ -1,2 +1,3 @@\n a\n+x\n b\n", "a\nx\nb\n"),
    "a line that goes": ("a\nb\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n", "a\nc\n"),
    "an empty line in it": ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
    "CRLF": ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\r\nc\r\n"),
    "blanks at the end of a line": ("a  \nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a  \nc\n"),
    "no line end at the end": (
        "a\nb",
        "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n",
        "a\nc",
    ),
    "a header of git": (
        "a\n",
        "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "b\n",
    ),
    "SQL comments": ("-- a\nb\n", "@@ -1,2 +1,2 @@\n--- a\n+-- c\n b\n", "-- c\nb\n"),
    "tabs": ("f:\n\ta\n", "@@ -1,2 +1,2 @@\n f:\n-\ta\n+\tb\n", "f:\n\tb\n"),
}


@pytest.mark.parametrize(("old", "diff", "new"), DIFFS.values(), ids=DIFFS)
def test_a_diff_is_applied(old: str, diff: str, new: str) -> None:
    assert edited(old, fenced(diff, "diff"), language="text") == new


def test_a_diff_may_show_what_surrounds_the_selection_and_not_change_it() -> None:
    around = {"before": "def f():\n", "after": "    return b\n"}
    shown = "--- a\n+++ b\n@@ -1,3 +1,3 @@\n def f():\n-    b = 1\n+    b = 2\n     return b\n"
    assert edited("    b = 1\n", fenced(shown, "diff"), **around) == "    b = 2\n"
    for outside in (
        "@@ -1,2 +1,2 @@\n-def f():\n+def g():\n-    b = 1\n+    b = 2\n",
        "@@ -2,2 +2,2 @@\n     b = 1\n-    return b\n+    return 2\n",
    ):
        with pytest.raises(EditRefused, match="does not fit"):
            edited("    b = 1\n", fenced(outside, "diff"), **around)


@pytest.mark.parametrize(
    "diff",
    [
        "@@ @@\n-b\n+c\n",
        "@@ -9,1 +9,1 @@\n-b\n+c\n",
        "@@ -1 +1 @@\n-x\n+c\n",
        "@@ -1 +1 @@\n a\n-a\n+c\n",
    ],
)
def test_a_diff_that_fits_nowhere_or_twice_is_refused(diff: str) -> None:
    with pytest.raises(EditRefused, match="does not fit"):
        edited("a\nb\na\nb\n", fenced(diff, "diff"), language="text")


MARKDOWN = "Run:\n\n```sh\nls\n```\n\nEnd.\n"
DOCUMENTS: dict[str, tuple[str, str, str, str]] = {
    "a document that is a diff": (
        "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
        fenced("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+z\n", "diff"),
        "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+z\n",
        "diff",
    ),
    "a list is no diff": ("- a\n- b\n", fenced("- a\n- c\n", "markdown"), "- a\n- c\n", "markdown"),
    "a longer fence": (
        MARKDOWN,
        f"````markdown\n{MARKDOWN}````".replace("ls", "ls -l"),
        MARKDOWN.replace("ls", "ls -l"),
        "markdown",
    ),
    "the same fence": (
        MARKDOWN,
        f"```markdown\n{MARKDOWN}```".replace("ls", "ls -l"),
        MARKDOWN.replace("ls", "ls -l"),
        "markdown",
    ),
    "fences without words": (
        MARKDOWN.replace("sh", ""),
        f"````markdown\n{MARKDOWN}````\nDone.".replace("sh", "").replace("ls", "ls -l"),
        MARKDOWN.replace("sh", "").replace("ls", "ls -l"),
        "markdown",
    ),
    "a fence in a docstring": (
        "def f():\n    pass\n",
        fenced('def f():\n    """Do.\n\n    ```\n    f()\n    ```\n    """\n    pass\n'),
        'def f():\n    """Do.\n\n    ```\n    f()\n    ```\n    """\n    pass\n',
        "python",
    ),
    "code about thinking": (
        "x = '<think>'\ny = '</think>'\n",
        fenced("x = '<thinking>'\ny = '</think>'\n"),
        "x = '<thinking>'\ny = '</think>'\n",
        "python",
    ),
    "code about thinking behind thinking": (
        "x = '<think>'\ny = '</think>'\n",
        "<think>\nchange x\n</think>\n" + fenced("x = '<thinking>'\ny = '</think>'\n"),
        "x = '<thinking>'\ny = '</think>'\n",
        "python",
    ),
    "code about thinking behind begun thinking": (
        "x = '<think>'\ny = '</think>'\n",
        "change x of '<think>' and '</think>'\n</think>\n\n"
        + fenced("x = '<thinking>'\ny = '</think>'\n"),
        "x = '<thinking>'\ny = '</think>'\n",
        "python",
    ),
    "one line in a sentence": ("x = 1\n", "It becomes `x = 2`.", "x = 2\n", "python"),
    "a line that goes": ("a\nb\nc\n", fenced("a\nc\n"), "a\nc\n", "python"),
}


@pytest.mark.parametrize(("old", "answer", "new", "language"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_what_looks_like_a_mark_and_is_text(old: str, answer: str, new: str, language: str) -> None:
    assert edited(old, answer, language=language) == new


TABS = "def f(a):\n\tif a:\n\t\tx = 1\n\t\ty = 2\n\treturn x\n"
UNITS = {"tabs": "\t", "four": "    ", "two": "  "}


@pytest.mark.parametrize("answered", UNITS)
@pytest.mark.parametrize("document", UNITS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_indentation_and_line_ends_are_the_documents(
    document: str, answered: str, end: str
) -> None:
    unit, other = UNITS[document], UNITS[answered]
    old = TABS.replace("\t", unit)

    def written(text: str) -> str:
        return text.replace("\t", unit).replace("\n", end)

    changed = TABS.replace("y = 2", "z = 3").replace("return x", "return x + z")
    longer = TABS.replace("return x", "for q in a:\n\t\tprint(q)\n\treturn x")
    for text in (changed, longer):
        answer = fenced(text.replace("\t", other))
        assert edited(old.replace("\n", end), answer) == written(text)


def test_documents_with_tabs_and_spaces_keep_both() -> None:
    old = "def f(a):\n\tif a:\n\t\tx = 1\n\treturn x\n\ndef g(a):\n    if a:\n        y = 2\n"
    "    return y\n"
    new = old.replace("y = 2", "y = 5").replace("x = 1", "x = 4")
    for answer in (new.replace("\t", "    "), new.replace("    ", "\t"), new):
        assert edited(old, fenced(answer)) == new
    aligned = "int f(int a)\n{\n\tint x = 1;\n\treturn g(x,\n\t         a);\n}\n"
    answer = aligned.replace("\t", "    ").replace("x = 1", "x = 2")
    assert edited(aligned, fenced(answer, "c"), language="c") == aligned.replace("x = 1", "x = 2")


@pytest.mark.parametrize(
    ("old", "answer", "new"),
    [
        (
            "\tx = 1\n\tif x:\n\t\ty = 2\n",
            "x = 1\nif x:\n    y = 3\n",
            "\tx = 1\n\tif x:\n\t\ty = 3\n",
        ),
        (
            "    x = 1\n    if x:\n        y = 2\n",
            "x = 1\nif x:\n\ty = 3\n",
            "    x = 1\n    if x:\n        y = 3\n",
        ),
        (
            "    x = 1\n    if x:\n        y = 2\n",
            "\tx = 1\n\tif x:\n\t\ty = 3\n",
            "    x = 1\n    if x:\n        y = 3\n",
        ),
        ("a\r\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\n"),
        ("\ufeffa = 1\nb\n", "a = 2\nb\n", "\ufeffa = 2\nb\n"),
        ("a = 1\nb", "a = 2\nb\n", "a = 2\nb"),
    ],
)
def test_pieces_of_documents_stay_as_deep_as_they_are(old: str, answer: str, new: str) -> None:
    assert edited(old, fenced(answer)) == new


def test_an_instruction_may_ask_for_another_indentation() -> None:
    spaces = TABS.replace("\t", "    ")
    assert edited(TABS, fenced(spaces), "indent by four spaces") == spaces
    assert edited(spaces, fenced(TABS), "use tabs") == TABS


def test_an_answer_that_goes_on_from_a_fence_is_read_in_the_same_way() -> None:
    def read(answer: str, old: str = OLD) -> str:
        return code_of_answer(
            answer, old, opening="```python", language="python", instruction=ASKED
        )

    assert read(NEW) == read(f"{NEW}```\n") == NEW
    assert read(f"```python\n{NEW}```\n") == NEW
    assert read(f"{NEW.rstrip()}```") == NEW
    assert read(f"<think>\nhm\n```python\nx\n```\n</think>\n{fenced(NEW)}") == NEW
    assert read(
        "@@ -1,2 +1,2 @@\n-def total(prices):\n+def sum(prices):\n     result = 0\n```"
    ) == (OLD.replace("total", "sum"))
    with pytest.raises(EditRefused, match="left out"):
        read("def total(prices):\n    whole = 0\n    # ... rest of the code unchanged\n```\n")


def test_only_the_first_block_outside_of_thinking_is_shown_while_it_is_written() -> None:
    answer = f"<think>\n{fenced(OLD)}\n</think>\nSo:\n{fenced(NEW)}\n"
    shown = [code_so_far(answer[:end], OLD) for end in range(len(answer) + 1)]
    assert all(NEW.startswith(text) for text in shown)
    assert shown[-1] == NEW
    assert "def total(prices):\n" in shown


@pytest.mark.parametrize(("deeper", "closes"), [(3, True), (4, False)])
def test_a_closing_fence_stands_three_columns_deeper_at_most(deeper: int, closes: bool) -> None:
    answer = f"```python\nx = 1\n{' ' * deeper}```\ny = 2\n```\n"
    block = fenced_blocks(answer)[0]
    assert block.text == ("x = 1\n" if closes else f"x = 1\n{' ' * deeper}```\ny = 2\n")


@pytest.mark.parametrize(("fence", "closes"), [("````", True), ("```", False)])
def test_a_fence_is_closed_by_one_as_long(fence: str, closes: bool) -> None:
    answer = f"````python\nx = 1\n{fence}\ny = 2\n````\n"
    block = fenced_blocks(answer)[0]
    assert block.text == ("x = 1\n" if closes else f"x = 1\n{fence}\ny = 2\n")
