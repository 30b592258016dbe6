"""Place holders in answers: filled in where that is clear, never applied."""

from __future__ import annotations

import random
import re

import pytest
from answer_texts import edited, fenced

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing import elided_code
from lsp_server.tasks.editing.elided_code import filled_in, place_holder

HOLDERS = """\
# ... rest of the code unchanged ...
# rest of the code unchanged
// ... existing code ...
// ... rest of the function remains the same
/* ... */
<!-- ... -->
<!-- rest of the page stays the same -->
-- ... remaining columns ...
; ... rest unchanged
% ... unchanged ...
' ... existing code ...
REM ... rest of the code ...
{/* ... existing JSX ... */}
(* ... *)
{- rest of the module unchanged -}
# ...
//...
/* rest of styles */
# (rest of the function unchanged)
# [... rest of code omitted for brevity ...]
# Rest of your code here
// other methods remain unchanged
# ... (same as before)
// Existing code
# remaining code here
# The rest of the implementation is the same as before
# Everything else stays the same
# no changes below
# unchanged
# ... other imports ...
// [rest of code]
[rest of the code unchanged]
... rest of the code ...
# … rest unchanged …
# Rest bleibt unverändert
// 其余代码保持不变
# ... le reste du code est inchangé
// el resto del código sin cambios
\"\"\"... rest of the docstring ...\"\"\"
* ... rest of the comment ...
# previous code remains the same
// rest of the class...
// ... keep existing code
# --- rest of file unchanged ---
# <rest of code>
// (unchanged)
// ...rest of the handlers
# Same as original
// ... more cases
::  ... rest of the script
dnl ... rest of the macros
# ... (other methods remain unchanged)
<%# ... rest of the template ... %>
// The remaining methods stay unchanged
-- rest of the query unchanged
# keep the rest as is
"""
COMMENTS = """\
# Return the rest of the code path
# existing users are kept
# Add the price to the total
# compute the remaining amount
// other cases are errors
# same for the other axis
# loop until nothing changes...
# load the original image
x = rest
# the rest is discarded
// unchanged rows are skipped below to save time
# see above
# TODO: handle other types
# previous value
# e.g. a, b, ...
return ...
# skip blank lines
# remaining bytes
# Import the module
...rest,
# everything in the list
# The code is the same for all platforms
// default: rest of the world uses metric
# all other fields are optional
# omitted fields get defaults
# No change in price
function f(...args) {
# existing items first
# The other arguments
# original order
// Other types
"""


@pytest.mark.parametrize("line", HOLDERS.splitlines())
def test_a_comment_in_any_syntax_may_stand_for_what_was_left_out(line: str) -> None:
    assert place_holder(line)
    assert place_holder(f"        {line}")


@pytest.mark.parametrize("line", COMMENTS.splitlines())
def test_comments_that_say_something_are_none(line: str) -> None:
    assert not place_holder(line)


CODE = (
    "def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n"
    "    return result\n\n\ndef mean(prices):\n    if not prices:\n        return 0\n"
    "    return total(prices) / len(prices)\n\n\ndef worst(prices):\n    return max(prices)\n"
)
CASES: dict[str, tuple[str, str, str, str, str | None]] = {
    "first left out": (
        CODE,
        "```python\n# ... existing code ...\n\n\ndef worst(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return min(prices)\n",
    ),
    "first left out tight": (
        CODE,
        "```python\n# ... existing code ...\ndef worst(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return min(prices)\n",
    ),
    "rest": (
        CODE,
        "```python\ndef total(prices):\n    whole = 0\n    for price in prices:\n"
        "        whole += price\n    return whole\n\n\n# rest of the code unchanged\n```",
        "change it",
        "python",
        "def total(prices):\n    whole = 0\n    for price in prices:\n        whole += price\n"
        "    return whole\n\n\ndef mean(prices):\n    if not prices:\n        return 0\n"
        "    return total(prices) / len(prices)\n\n\ndef worst(prices):\n    return max(prices)\n",
    ),
    "rest one blank": (
        CODE,
        "```python\ndef total(prices):\n    whole = 0\n    for price in prices:\n"
        "        whole += price\n    return whole\n\n# rest of the code unchanged\n```",
        "change it",
        "python",
        "def total(prices):\n    whole = 0\n    for price in prices:\n        whole += price\n"
        "    return whole\n\n\ndef mean(prices):\n    if not prices:\n        return 0\n"
        "    return total(prices) / len(prices)\n\n\ndef worst(prices):\n    return max(prices)\n",
    ),
    "rest no blank": (
        CODE,
        "```python\ndef total(prices):\n    whole = 0\n    for price in prices:\n"
        "        whole += price\n    return whole\n# ...\n```",
        "change it",
        "python",
        "def total(prices):\n    whole = 0\n    for price in prices:\n        whole += price\n"
        "    return whole\n\n\ndef mean(prices):\n    if not prices:\n        return 0\n"
        "    return total(prices) / len(prices)\n\n\ndef worst(prices):\n    return max(prices)\n",
    ),
    "middle": (
        CODE,
        "```python\n# ...\n\ndef mean(prices):\n    if not prices:\n        return 1\n"
        "    return total(prices) / len(prices)\n\n# ...\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 1\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return max(prices)\n",
    ),
    "middle fn omitted": (
        CODE,
        "```python\ndef total(prices):\n    whole = 0\n    for price in prices:\n"
        "        whole += price\n    return whole\n\n\n# ... mean unchanged ...\n\n\n"
        "def worst(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    whole = 0\n    for price in prices:\n        whole += price\n"
        "    return whole\n\n\ndef mean(prices):\n    if not prices:\n        return 0\n"
        "    return total(prices) / len(prices)\n\n\ndef worst(prices):\n    return min(prices)\n",
    ),
    "body rest": (
        CODE,
        "```python\ndef total(prices):\n    result = 0\n"
        "    # ... rest of the function unchanged\n\n\n# ...\n\n\ndef worst(prices):\n"
        "    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return min(prices)\n",
    ),
    "body, changed first": (
        CODE,
        "```python\ndef total(prices):\n    whole = 0\n"
        "    # ... rest of the function unchanged\n\n\n# ...\n\n\ndef worst(prices):\n"
        "    return min(prices)\n```",
        "change it",
        "python",
        None,
    ),
    "docstring": (
        CODE,
        '```python\ndef total(prices):\n    """Sum."""\n    # ... existing code ...\n\n\n'
        "# ... rest unchanged\n```",
        "change it",
        "python",
        'def total(prices):\n    """Sum."""\n    result = 0\n    for price in prices:\n'
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return max(prices)\n",
    ),
    "body bare dots": (
        CODE,
        "```python\ndef total(prices):\n    ...\n\n\ndef mean(prices):\n    ...\n\n\n"
        "def worst(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return min(prices)\n",
    ),
    "stub asked": (
        CODE,
        "```python\ndef total(prices): ...\n\n\ndef mean(prices):\n    ...\n\n\n"
        "def worst(prices):\n    ...\n```",
        "turn these into stubs",
        "python",
        "def total(prices): ...\n\n\ndef mean(prices):\n    ...\n\n\ndef worst(prices):\n    ...\n",
    ),
    "elided one line": (
        CODE,
        "```python\ndef total(prices): ...\n\n\ndef mean(prices): ...  # unchanged\n\n\n"
        "def worst(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return min(prices)\n",
    ),
    "notes": (
        CODE,
        "```python\ndef total(prices):\n    result = 0  # unchanged\n"
        "    for price in prices:\n        result += price\n    return result\n\n\n"
        "def mean(prices):\n    if not prices:\n        return 0\n"
        "    return total(prices) / len(prices)\n\n\ndef worst(prices):\n"
        "    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return min(prices)\n",
    ),
    "only holder": (
        CODE,
        "```python\n# ... existing code ...\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return max(prices)\n",
    ),
    "insert at end unasked": (
        CODE,
        "```python\n# ... existing code ...\n\n\ndef best(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        None,
    ),
    "insert at end": (
        CODE,
        "```python\n# ... existing code ...\n\n\ndef best(prices):\n    return min(prices)\n```",
        "add a function best",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return max(prices)\n\n\ndef best(prices):\n"
        "    return min(prices)\n",
    ),
    "list item": (
        "a = [\n    1,\n    2,\n]\n",
        "```python\na = [\n    # ... existing items\n    3,\n]\n```",
        "add 3",
        "python",
        None,
    ),
    "import": (
        "import os\nimport re\nx = 1\n",
        "```python\n# ... existing imports\nimport sys\nx = 1\n```",
        "import sys, too",
        "python",
        None,
    ),
    "insert at start": (
        CODE,
        "```python\nimport math\n\n# ... rest of the file unchanged ...\n```",
        "change it",
        "python",
        "import math\n\ndef total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return max(prices)\n",
    ),
    "js": (
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
        "```js\nclass A {\n  // ... other methods\n\n  three() {\n    return 4;\n  }\n}\n```",
        "change it",
        "javascript",
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 4;\n  }\n}\n",
    ),
    "js inner": (
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
        "```js\nclass A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 5;\n  }\n\n"
        "  // ... rest unchanged ...\n}\n```",
        "change it",
        "javascript",
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 5;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
    ),
    "js both": (
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
        "```js\nclass A {\n  // ...\n  two() {\n    return 5;\n  }\n  // ...\n}\n```",
        "change it",
        "javascript",
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 5;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
    ),
    "js elided body": (
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
        "```js\nclass A {\n  one() { /* ... */ }\n\n  two() {\n    return 5;\n  }\n\n"
        "  three() { ... }\n}\n```",
        "change it",
        "javascript",
        None,
    ),
    "html": (
        "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n<p>x</p>\n",
        "```html\n<!-- ... -->\n<p>y</p>\n```",
        "change it",
        "html",
        None,
    ),
    "sql": (
        "SELECT a,\n  b,\n  c\nFROM t\nWHERE x = 1;\n",
        "```sql\nSELECT a,\n  -- ... other columns\nFROM t\nWHERE x = 2;\n```",
        "change it",
        "sql",
        "SELECT a,\n  b,\n  c\nFROM t\nWHERE x = 2;\n",
    ),
    "lua": (
        "local a = 1\nlocal b = 2\nprint(a)\n",
        "```lua\n-- ...\nprint(b)\n```",
        "change it",
        "lua",
        None,
    ),
    "vim": (
        "set a\nset b\nset c=1\n",
        '```vim\n" ... existing settings ...\nset c=2\n```',
        "change it",
        "vim",
        "set a\nset b\nset c=2\n",
    ),
    "lisp": (
        "(defun a () 1)\n(defun b () 2)\n",
        "```lisp\n;; ... rest unchanged ...\n(defun b () 3)\n```",
        "change it",
        "lisp",
        "(defun a () 1)\n(defun b () 3)\n",
    ),
    "bat": (
        "set A=1\nset B=2\nset C=3\n",
        "```bat\n:: ... \nset C=4\n```",
        "change it",
        "bat",
        "set A=1\nset B=2\nset C=4\n",
    ),
    "tex": (
        "\\a\n\\b{x}\n\\c{y}\n",
        "```tex\n% ... rest unchanged ...\n\\c{z}\n```",
        "change it",
        "latex",
        None,
    ),
    "dup ambiguous": (
        "a\nx = 1\nb\nx = 1\nc\n",
        "```python\n# ...\nx = 2\n# ...\n```",
        "change it",
        "python",
        None,
    ),
    "own comment kept": (
        "x = 1\n# ...\ny = 2\n",
        "```python\nx = 1\n# ...\ny = 3\n```",
        "change it",
        "python",
        "x = 1\n# ...\ny = 3\n",
    ),
    "asked words": (
        "x = 1\n",
        "```python\n# rest of the code unchanged\nx = 1\n```",
        "add the comment '# rest of the code unchanged' above",
        "python",
        "# rest of the code unchanged\nx = 1\n",
    ),
    "dedented": (
        "    def a(self):\n        return 1\n\n    def b(self):\n        return 2\n",
        "```python\n# ...\n\ndef b(self):\n    return 3\n```",
        "change it",
        "python",
        "    def a(self):\n        return 1\n\n    def b(self):\n        return 3\n",
    ),
    "tabs": (
        "class A:\n\tdef a(self):\n\t\treturn 1\n\n\tdef b(self):\n\t\treturn 2\n",
        "```python\nclass A:\n    # ...\n\n    def b(self):\n        return 3\n```",
        "change it",
        "python",
        "class A:\n\tdef a(self):\n\t\treturn 1\n\n\tdef b(self):\n\t\treturn 3\n",
    ),
    "crlf": (
        "def total(prices):\r\n    result = 0\r\n    for price in prices:\r\n"
        "        result += price\r\n    return result\r\n\r\n\r\ndef mean(prices):\r\n"
        "    if not prices:\r\n        return 0\r\n    return total(prices) / len(prices)\r\n"
        "\r\n\r\ndef worst(prices):\r\n    return max(prices)\r\n",
        "```python\n# ...\n\n\ndef worst(prices):\n    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\r\n    result = 0\r\n    for price in prices:\r\n"
        "        result += price\r\n    return result\r\n\r\n\r\ndef mean(prices):\r\n"
        "    if not prices:\r\n        return 0\r\n    return total(prices) / len(prices)\r\n"
        "\r\n\r\ndef worst(prices):\r\n    return min(prices)\r\n",
    ),
    "delete middle between": (
        CODE,
        "```python\ndef total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef worst(prices):\n"
        "    return min(prices)\n```",
        "change it",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef worst(prices):\n"
        "    return min(prices)\n",
    ),
    "add method js": (
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n}\n",
        "```js\nclass A {\n  // ... existing methods ...\n\n  four() {\n    return 4;\n  }\n}\n```",
        "add a method four",
        "javascript",
        "class A {\n  one() {\n    return 1;\n  }\n\n  two() {\n    return 2;\n  }\n\n"
        "  three() {\n    return 3;\n  }\n\n  four() {\n    return 4;\n  }\n}\n",
    ),
    "add with param": (
        CODE,
        "```python\n# ...\n\n\ndef mean(prices, weights):\n    if not prices:\n"
        "        return 0\n    return total(prices) / len(prices)\n\n\n# ...\n```",
        "add a parameter weights",
        "python",
        "def total(prices):\n    result = 0\n    for price in prices:\n"
        "        result += price\n    return result\n\n\ndef mean(prices, weights):\n"
        "    if not prices:\n        return 0\n    return total(prices) / len(prices)\n\n\n"
        "def worst(prices):\n    return max(prices)\n",
    ),
}
"""The text, the answer, the instruction, the language, and what comes of it; None: refused."""


@pytest.mark.parametrize(("old", "answer", "asked", "language", "new"), CASES.values(), ids=CASES)
def test_what_was_left_out_is_filled_in_or_the_answer_is_refused(
    old: str, answer: str, asked: str, language: str, new: str | None
) -> None:
    if new is None:
        with pytest.raises(EditRefused, match="left out"):
            edited(old, answer, asked, language)
    else:
        assert edited(old, answer, asked, language) == new


DOTS = {
    "x: Callable[..., int]": "python",
    "y = x[...]": "python",
    "z = x[..., None]": "python",
    "def f(*args): ...": "python",
    "class Wrong(Exception): ...": "python",
    "Tuple[int, ...]": "python",
    "return <A {...props} />;": "javascript",
    "const a = {...b, c};": "javascript",
    "const a = { ...b };": "javascript",
    "f(...args);": "javascript",
    "function f(...args) {}": "javascript",
    "} catch (...) {": "cpp",
    "int printf(const char *, ...);": "c",
    "template <typename... T> void f(T... x);": "cpp",
    "for i in 0...n {": "swift",
    "x = 1  # then wait...": "python",
    'print("...")': "python",
    "let a = &b[..];": "rust",
    "match x { 1..=3 => {} }": "rust",
    "func f(x ...int) {": "go",
    ">>> for i in x:\n...     f(i)\n... )\n...\n1": "python",
    "if a:  # ...a function, or": "python",
    "# Original implementation": "python",
    "# etc.": "python",
    "# all modes are the same": "python",
    "#   continue": "python",
}


@pytest.mark.parametrize(("line", "language"), DOTS.items(), ids=DOTS)
def test_dots_that_are_code_stay(line: str, language: str) -> None:
    assert edited("x = 1\n", fenced(f"x = 1\n{line}\n"), "change it", language) == (
        f"x = 1\n{line}\n"
    )


MARKS = ["# ... existing code ...", "# rest of the code unchanged", "# ...", "# (unchanged)"]
NAMES = ["alpha", "bravo", "carol", "delta", "eagle", "fancy", "grape", "hotel", "index", "joker"]


def program(rng: random.Random) -> list[str]:
    """Lines of some functions."""
    lines: list[str] = []
    for name in rng.sample(NAMES, rng.randrange(2, 6)):
        lines.append(f"def {name}({rng.choice(NAMES)}):")
        for _ in range(rng.randrange(1, 5)):
            one, other, number = rng.choice(NAMES), rng.choice(NAMES), rng.randrange(90)
            lines += rng.choice(
                [
                    [f"    {one} = {number}"],
                    [f"    if {one}:", f"        return {number}"],
                    [f"    print({one})"],
                    [f"    for {one} in {other}:", f"        {other} += {number}"],
                    [""],
                ]
            )
        lines += [f"    return {rng.choice(NAMES)}", "", ""]
    return lines[:-2]


def shortened(rng: random.Random, lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines with changes, whole and with place holders for some of those that stayed."""
    changed = {n for n in range(len(lines)) if lines[n].strip() and rng.random() < 0.1}
    new = [
        re.sub(r"return|= |print", lambda found: f"{found[0].strip()} 7 + ", line, count=1)
        if n in changed
        else line
        for n, line in enumerate(lines)
    ]
    answer: list[str] = []
    place = 0
    while place < len(lines):
        size = rng.randrange(2, 12)
        run = new[place : place + size]
        stayed = not changed & set(range(place, place + size)) and any(map(str.strip, run))
        if stayed and rng.random() < 0.5:
            first = next(line for line in run if line.strip())
            answer.append(first[: len(first) - len(first.lstrip())] + rng.choice(MARKS))
        else:
            answer += run
        place += size
    return new, answer


def test_no_other_text_comes_out_of_random_programs() -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    filled = 0
    for number in range(seed, seed + 300):
        rng = random.Random(number)
        old = program(rng)
        new, answer = shortened(rng, old)
        try:
            made = filled_in("\n".join(answer), "\n".join(old), "python")
        except EditRefused:
            continue
        filled += any(map(place_holder, answer))
        assert made.split() == "\n".join(new).split(), f"seed {number}"
    assert filled > 30


@pytest.mark.parametrize(("spare", "is_compared"), [(0, True), (1, False)])
def test_texts_are_compared_up_to_a_size(
    spare: int, is_compared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four lines of the original by three of the answer."""
    monkeypatch.setattr(elided_code, "MOST_CELLS", 12 - spare)
    old = "first = 1\nsecond = 2\nthird = 3\nfourth = 4\n"
    answer = "first = 10\n# ... existing code ...\nfourth = 4\n"
    if is_compared:
        assert elided_code.filled_in(answer, old, "python") == old.replace("= 1\n", "= 10\n")
        return
    with pytest.raises(EditRefused, match="left out"):
        elided_code.filled_in(answer, old, "python")


def test_five_words_behind_dots_are_a_place_holder_and_six_are_a_sentence() -> None:
    assert elided_code.place_holder("# ... so other code goes on")
    assert not elided_code.place_holder("# ... so other code goes on here")
