"""What of the model's text is shown: golden cases."""

from __future__ import annotations

import pytest
from text_cases import data_cases

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
    "the next line with a comma": ('{\n  "a": 1,\n  ', '"version": "1.0.0",',
                                   '\n  "version": "1.0.0"\n}\n', ""),
    "the next line without its comma": ("f(\n    host,\n    ", "port=8080",
                                        "\n    port=8080,\n)\n", ""),
    "the next line with a semicolon": ("const o = 1;\n", "const p = o + 1;",
                                       "\nconst p = o + 1\n", ""),
    "the next line without its semicolon": (".a {\n  color: red;\n  ", "display: flex",
                                            "\n  display: flex;\n}\n", ""),
    "the next line without what it closes": ('m = {\n\t"a": 1,\n\t', '"beta": 2,',
                                             '\n\t"beta": 2}\n', ""),
    "the next line without its comment": ("def f(a):\n    b = a\n    ", "c = b * 2",
                                          "\n    c = b * 2  # twice\n    return c\n", ""),
    "a line, then the next one with a comma": ("{\n  ", '"b": 2,\n  "version": "1.0.0",\n',
                                               '\n  "version": "1.0.0"\n}\n', '"b": 2,'),
    "two next lines with commas": ("select\n  id,\n  ", "first_name,\n  last_name,",
                                   "\n  first_name,\n  last_name\nfrom users;\n", ""),
    "the next field of a struct": ("struct P {\n    x: f64,\n    ", "height: f64,",
                                   "\n    height: f64\n}\n", ""),
    "the next argument of a macro": ("vec![\n    alpha(1),\n    ", "alpha(2),",
                                     "\n    alpha(2)\n]\n", ""),
    "the next member of an interface": ("interface U {\n  name: string;\n  ", "email: string;",
                                        "\n  email: string\n}\n", ""),
    "the next key, and others behind it": ('{\n  "name": "shop",\n  ',
                                           '"tags": ["a"],\n  "license": "MIT",\n  "file": "X",',
                                           '\n  "license": "MIT"\n}\n', '"tags": ["a"],'),
    "the same key of another object": ('{\n  "a": {\n    ',
                                       '"type": "string"\n  },\n  "b": {',
                                       '\n    "type": "string"\n  }\n}\n',
                                       '"type": "string"\n  },\n  "b": {'),
    "the next row may come twice": ("grid = [\n    [0, 0, 0],\n    ", "[0, 0, 0],",
                                    "\n    [0, 0, 0]\n]\n", "[0, 0, 0],"),
    "a longer line is another one": ("f(\n    host,\n    ", "port=8080 + n,",
                                     "\n    port=8080\n)\n", "port=8080 + n,"),
    "a line that goes on is another one": ("x = (\n    alpha\n    ", "+ beta_one",
                                           "\n    + beta_one * 2\n)\n", "+ beta_one"),
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


@data_cases()
def test_several_lines_only_where_a_block_may_follow(
    before: str, after: str, several: bool
) -> None:
    ask = CompletionRequest("d", "d.py", "", "python", f"x\n{before}", f"{after}\nx")
    assert ask.wants_several_lines is several
