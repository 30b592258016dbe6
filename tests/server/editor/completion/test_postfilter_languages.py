"""What is shown, by language: brackets, blocks that repeat, loops. `¦` is the cursor."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from counted_calls import counted_calls

from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.text.syntax.brackets import code_brackets, unpaired
from lsp_server.text.syntax.incremental_brackets import IncrementalBrackets
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.syntax.tree import SyntaxTree

DATA = Path(__file__).parents[3] / "data" / "languages"


def shown(language: str, place: str, text: str) -> str:
    prefix, suffix = place.split("¦")
    return shown_text(text, prefix, suffix, IncrementalBrackets.of(language))


# The text closes what is open, behind signs that look like comments, strings or brackets.
FITS = [
    ("css", "#header {\n  color: red;\n}\n\n#main {\n  margin: 0;¦\n", "\n}"),
    ("css", 'a {\n  content: "}";¦\n', "\n}"),
    ("scss", "#id {\n  // it's (\n  .x {\n    a: b;¦\n", "\n  }\n}"),
    ("javascript", "class A {\n  #x = 1;\n\n  #stop() {¦\n}\n", "\n    this.#x = 0;\n  }"),
    ("javascript", "f(/[)'\"]/, () => {¦\n", "\n  g();\n});"),
    ("typescript", "const a = `it's (${f(¦", "b)})`;"),
    ("typescriptreact", "const a = (<p>it's :( {f(¦", "b)}</p>);"),
    ("shellscript", "case $1 in\n  ¦\nesac\n", 'a) echo "x" ;;\n  b|c)\n    f\n    ;;'),
    ("shellscript", "x=${a#b}\nif f; then\n  y=$((1 + 2¦\nfi\n", "))"),
    ("shellscript", "a=${#b[@]}\nf() {¦\n", "\n  g\n}"),
    ("markdown", "It's a list:\n\n1) one\n¦\n", "2) two :)"),
    ("markdown", "a (b\n\n¦\n", "see [c](d) and ]"),
    ("rust", "fn f<'a>(x: &'a str) -> &'a str {\n    g(x¦\n}\n", ", 'b', \"(\")"),
    ("rust", "impl<'a> A<'a> {\n    fn f(&'a self) {¦\n", "\n        g();\n    }\n}"),
    ("lisp", "(defun f (x)\n  '(a b)\n  ; it's (\n  (list 'c¦\n", " x))"),
    ("lisp", "(f #\\( '(¦\n", "a))"),
    ("clojure", "(def a 'b) ; (\n(f \\( [¦", "a])"),
    ("haskell", "f' x' = g (h x'¦\n", " 'c' '(')"),
    ("haskell", "-- it's (\nf = [x' | x' <- (a¦\n", ")]"),
    ("markdown", "```\nit's (¦\n```\n", " all ] there is }"),
    ("latex", "100\\% of {it's¦\n", " [0, 1)}"),
    ("latex", "% it's {\n\\textbf{a¦\n", "}"),
    ("ocaml", "type 'a t = 'a list\nlet f x' = (g x'¦\n", " '(')"),
    ("python", "x = {  # it's (\n    'a': f(¦\n", "'('),\n}"),
    ("python", 'x = (\n    """it\'s (""",\n    r"\\(",¦\n', "\n    y,\n)"),
    ("php", "<?php\n# it's (\n$a = ['x' => f($b¦\n", ", \"{$c}\")];"),
    ("cpp", "int a = 1'000;\nint b[] = {f(¦\n", "')', 2'000)};"),
    ("c", "#define A '('\nint f(void) {\n    return g(\"%d)\", (int)¦\n", "A);\n}"),
    ("lua", "-- it's (\nlocal a = {[[ ( ]], f(¦\n", "')')}"),
    ("ruby", "# it's (\na = [%w[b c], ?(, f(¦\n", "'d')]"),
    ("sql", "-- it's (\nselect f(a, ':(', (¦\n", "b))"),
    ("vim", '" it\'s (\nlet a = {"b": f(¦\n', "'(')}"),
    ("matlab", "% it's (\nx = f(a', [b'¦\n", " c'])"),
    ("julia", "# it's (\nx = f(a', [b'¦\n", ", '('])"),
    ("perl", "# it's (\nmy @a = (q(it's), f(¦\n", "'('));"),
    ("csharp", 'var a = f(@"\\(", $"{b} (", (¦\n', "'('));"),
    ("go", "// it's (\nx := f(`(\"`, g(¦\n", "'('))"),
    ("java", "/* it's ( */\nint[] a = {f(¦\n", "'('), g(\"{\")};"),
    ("html", "<p>it's :(</p>\n<script>\nf(function () {¦\n</script>\n", "\n  g(':)');\n});"),
    ("yaml", "# it's (\na: [b, {c: ¦\n", "d}]"),
    ("terraform", 'a "b" { # it\'s (\n  c = f("${d}(", [¦\n', "e])\n}"),
    ("nix", "{ # it's (\n  a = f (g ''it's (''¦\n", " [ ])\n; }"),
    ("elixir", "# it's (\nx = f(~s(it's), [?(, ¦\n", "'('])"),
    ("erlang", "% it's (\nf(X) -> g([$(, ¦\n", "\"(\"])."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "place", "text"), FITS)
def test_a_closing_bracket_that_is_needed_stays(language: str, place: str, text: str) -> None:
    assert shown(language, place, text) == text


# What the text after the cursor closes already is cut, and no more.
HELD = [
    ("css", "#a {\n  color: red;¦\n}\n", "\n  margin: 0;\n}", "\n  margin: 0;"),
    ("javascript", "class A {\n  #f() {¦\n  }\n}\n", "\n    g();\n  }\n}", "\n    g();"),
    ("javascript", "f(`it's`, ¦)\n", "a))", "a"),
    ("typescript", "const a = { b: [¦] };\n", "1, 2] };", "1, 2"),
    ("python", "x = f(a, # it's\n    ¦)\n", "b[1])", "b[1]"),
    ("rust", "fn f<'a>() {\n    ¦\n}\n", "g('(');\n}", "g('(');"),
    ("lisp", "(list 'a ¦)\n", "(f 'b))", "(f 'b)"),
    ("haskell", "f' = g (¦)\n", "x')", "x'"),
    ("shellscript", "f() {\n  ¦\n}\n", "case $1 in\n    a) g ;;\n  esac\n}",
     "case $1 in\n    a) g ;;\n  esac"),
    ("c", "int f(void) {\n    if (a) {¦\n    }\n}\n", "\n        b('}');\n    }\n}",
     "\n        b('}');"),
    ("java", "class A {\n  void f() {¦\n  }\n}\n", "\n    g(\"}\");\n  }", "\n    g(\"}\");"),
    ("go", "func f() {\n\tg(¦)\n}\n", "`)`, a)\n}", "`)`, a"),
    ("json", '{\n  "a": [¦]\n}\n', '"]", 1]\n}', '"]", 1'),
    ("php", "<?php\nfunction f() { # it's\n  ¦\n}\n", "g(');');\n}", "g(');');"),
    ("latex", "\\textbf{¦}\n", "it's [0, 1)}", "it's [0, 1)"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "place", "text", "wanted"), HELD)
def test_a_closing_bracket_that_stands_there_already_is_cut(
    language: str, place: str, text: str, wanted: str
) -> None:
    assert shown(language, place, text) == wanted


TOO_MANY = [
    ("css", "#a {\n  color: red;¦\n", "\n}\n}", "\n}"),
    ("javascript", "#!/bin/node\nf(¦\n", "a))", "a)"),
    ("python", "x = 1¦  # (\n", " + 2)", " + 2"),
    ("rust", "fn f<'a>() {¦\n", "\n}\n}", "\n}"),
    ("lisp", "(f 'a¦\n", " b))", " b)"),
    ("haskell", "f' = g (x'¦\n", "))", ")"),
    ("c", "char a = '('; f(¦\n", "b]);", "b"),
    ("go", "x := `(` + f(¦\n", "a))", "a)"),
    ("json", '["("¦\n', "]]", "]"),
    ("ruby", "x = ?( + f(¦\n", "a))", "a)"),
    ("sql", "select ':(', f(¦\n", "a))", "a)"),
]


@pytest.mark.parametrize(("language", "place", "text", "wanted"), TOO_MANY)
def test_a_bracket_that_closes_nothing_is_cut(
    language: str, place: str, text: str, wanted: str
) -> None:
    assert shown(language, place, text) == wanted


# The model wrote a block that stands above already. It is shown.
REPEATED = [
    ("json", '[\n  {\n    "type": "a",\n    "size": 1\n  },\n  {¦\n]\n',
     '\n    "type": "a",\n    "size": 1\n  }'),
    ("json", '[\n  {\n    "a": 1\n  },\n¦]\n', '  {\n    "a": 1\n  },'),
    ("css", "#a {\n  color: red;\n  margin: 0;\n}\n\n#b {¦\n", "\n  color: red;\n  margin: 0;\n}"),
    ("css", "a {\n  b: c;\n  d: e;\n}\n\na:hover {\n  ¦\n}\n", "b: c;\n  d: e;"),
    ("python", "if not a:\n    f()\n    return None\nif not b:\n    ¦\n", "f()\n    return None"),
    ("python", "try:\n    f()\n    g()\nexcept A:\n    f()\n    g()\nexcept B:¦\n",
     "\n    f()\n    g()"),
    ("javascript", "if (!a) {\n  return;\n}\nif (!b) {¦\n", "\n  return;\n}"),
    ("go", "if err != nil {\n\treturn nil, err\n}\nb, err := g()\n¦\n",
     "if err != nil {\n\treturn nil, err\n}"),
    ("rust", "match a {\n    1 => {\n        f();\n        g();\n    }\n    2 => {¦\n}\n",
     "\n        f();\n        g();\n    }"),
    ("java", "switch (a) {\n  case 1:\n    f();\n    break;\n  case 2:¦\n}\n",
     "\n    f();\n    break;"),
    ("html", "<tr>\n  <td>a</td>\n  <td>b</td>\n</tr>\n<tr>¦\n",
     "\n  <td>a</td>\n  <td>b</td>\n</tr>"),
    ("yaml", "- name: a\n  run: x\n  env: y\n- name: b\n¦", "  run: x\n  env: y"),
    ("shellscript", "a)\n  f\n  g\n  ;;\nb)¦\n", "\n  f\n  g\n  ;;"),
    ("c", "static const int a[] = {\n    0,\n¦\n    1,\n};\n", "    0,\n    0,"),
    ("lua", "if not a then\n  return nil\nend\nif not b then¦\n", "\n  return nil\nend"),
    ("plaintext", "dear a,\nthanks\nbest\n\ndear b,\n¦", "thanks\nbest"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "place", "text"), REPEATED)
def test_a_block_that_comes_again_is_shown(language: str, place: str, text: str) -> None:
    assert shown(language, place, text) == text


# It goes on like that to the end: cut after the first round, or not shown.
LOOPS = [
    ("", "x = 1\n" * 3, "x = 1"),
    ("", "f(a)\n" * 40, "f(a)"),
    ("", "f(a)\ng(b)\n" * 3 + "f(", "f(a)\ng(b)"),
    ("", "if a:\n    f()\nelse:\n    g()\n" * 3, "if a:\n    f()\nelse:\n    g()"),
    ("", "start()\n" + "f(a)\n" * 5, "start()\nf(a)"),
    ("", "a\n\n" * 4, "a"),
    ("x = ", "a and b or " * 6, "a and b or"),
    ("x = ", "a and b or " * 6 + "a an", "a and b or"),
    ('x = "', "very " * 9, "very"),
    ("", "x = 1\n" * 12 + "y = 2", "x = 1"),
    ("a()\nb()\n", "a()\nb()", ""),
    ("a()\nb()\nc()\n", "a()\nb()\nc()\n", ""),
    ("if a:\n    b()\n    c()\n    ", "b()\n    c()", ""),
    ("x\n" + "{\n  a\n}\n" * 2, "{\n  a\n}", ""),
    ("é 1\n", "é = 𝄞\né = 𝄞\né = 𝄞\né", "é = 𝄞"),
]


@pytest.mark.parametrize("language", ["plaintext", "python", "javascript"])
@pytest.mark.parametrize(("prefix", "text", "wanted"), LOOPS)
def test_a_loop_is_cut(language: str, prefix: str, text: str, wanted: str) -> None:
    assert shown(language, prefix + "¦\n", text) == wanted


# It ends by itself: no loop.
NO_LOOPS = [
    ("x = [", "0, 0, 0, 0, 0, 0]"),
    ("x = [\n", "    0,\n    0,\n    0,\n]"),
    ('x = "', '&nbsp;&nbsp;&nbsp;&nbsp;end"'),
    ("", "f()\nf()"),
    ("", "f()\nf()\nf()\ng()"),
    ("", "{\n  a\n},\n{\n  a\n}"),
    ("", "---------------"),
    ("", "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 |\n| 1 | 3 |"),
    ("x = f(", "a, a, a, a, b)"),
    ("", "a\nb\na\nb\nc"),
    ("x = ", "b'\\x00\\x00\\x00\\x00\\x00'"),
]


@pytest.mark.parametrize(("prefix", "text"), NO_LOOPS)
def test_what_ends_by_itself_is_no_loop(prefix: str, text: str) -> None:
    assert shown("plaintext", prefix + "¦\n", text) == text


# What comes below, or stands at the end of the line, is not written twice.
DOUBLED = [
    ("python", "x = 1\n¦\ny = compute(x)\n", "y = compute(x)", ""),
    ("python", "def f():\n    ¦\n    return a\n", "b()\n    return a", "b()"),
    ("javascript", "f(¦);\n", "a);", "a"),
    ("javascript", 'f("¦");\n', 'a");', "a"),
    ("css", "a {\n  ¦\n  margin: 0 auto;\n}\n", "color: red;\n  margin: 0 auto;", "color: red;"),
    ("html", "<p>¦</p>\n", "it's</p>", "it's"),
    ("html", "<ul>\n  <li>a¦\n</ul>\n", "</li>\n</ul>", "</li>"),
    ("html", "<b>\n  <b>\n    a¦\n</b>\n", "\n  </b>\n</b>", "\n  </b>"),
    ("html", "<b>\n<b>\na¦\n</b>\n", "\n</b>", "\n</b>"),
    ("json", '{\n  ¦\n  "b": [2],\n}\n', '"a": [1],\n  "b": [2],', '"a": [1],'),
    ("c", "int f() {\n    ¦\n    return a[0];\n}\n", "b();\n    return a[0];\n}", "b();"),
    ("lua", "f(¦) + 1\n", "a) + 1", "a"),
    ("go", "x := g(\n\t¦\n\tlast(1),\n)\n", "first(0),\n\tlast(1),\n)", "first(0),"),
    ("lisp", "(f ¦)\n", "a)", "a"),
]


@pytest.mark.parametrize(("language", "place", "text", "wanted"), DOUBLED)
def test_what_follows_is_not_doubled(language: str, place: str, text: str, wanted: str) -> None:
    assert shown(language, place, text) == wanted


GUARDS = [
    ("python", "    if a:\n        ¦\n    return None\n", "return None"),
    ("javascript", "if (!a) {\n  if (b) {\n    ¦\n  }\n  return;\n}\n", "return;"),
    ("rust", "x.map(|y| Vec::<¦>())\n", "Option<u8>"),
    ("typescript", "let a: Array<¦> = [];\n", "Map<string, b>"),
    ("javascript", "f(¦);\n", "g(a)"),
    ("javascript", "f(¦)\n", "\n  a,\n  b,"),
    ("python", "x = f(¦)\n", "a[0]) + g(b"),
    ("cmake", 'set(A ¦")\n', 'B "'),
    ("python", "a = [';¦','\n", "', '"),
]


@pytest.mark.parametrize(("language", "place", "text"), GUARDS)
def test_what_only_looks_like_the_rest_stays(language: str, place: str, text: str) -> None:
    assert shown(language, place, text) == text


BLOCKS = {
    "shop.py": "f(a, [1], {})  # (\n\n",
    "queue.js": "f(a, [1], `}`);\n\n",
    "ring.c": "int f(int a[], int b); /* ( */\n\n",
    "page.css": "#a { b: c(d) }\n\n",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_kept_brackets_are_those_of_the_whole_document(name: str) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    language = language_of_path(name)
    text = (DATA / name).read_text(encoding="utf-8") * 4
    kept = IncrementalBrackets.of(language)
    assert kept is not None
    block = BLOCKS[name]
    for _ in range(10):
        if block in text and chance.random() < 0.4:
            start = end = text.find(block)
            text = text[:start] + text[start + len(block) :]
        else:
            start = chance.choice([at.end() for at in re.finditer(r"\n\n(?=[^\s@])", text)])
            end = start + len(block)
            text = text[:start] + block + text[start:]
        around = kept.around(text, start, end)
        assert around is not None
        tree = SyntaxTree.parsed(text, language)
        every = code_brackets(tree, tree.pieces())
        assert around.open_before == unpaired(at.sign for at in every if at.place < start).opening
        assert around.closed_after == unpaired(at.sign for at in every if at.place >= end).closing


def test_a_long_comment_or_string_is_never_divided() -> None:
    prose = "it's a line (of prose\n" * 400
    signs = {"python": '"""/"""', "c": "/*|*/", "javascript": "x = `/`", "html": "<!--/-->"}
    for language, both in signs.items():
        opens, closes = both.split("|" if "|" in both else "/")
        kept = IncrementalBrackets.of(language)
        assert kept is not None
        around = kept.around(f"{opens}\n{prose}{closes}\n" * 3, 0, 0)
        assert around is not None
        assert around.closed_after == ""
        place = len(opens + prose + closes)
        around = kept.around(f"{opens}\n{prose}{closes}\n" * 3, place, place)
        assert around is not None
        assert around.open_before == ""


def _document() -> str:
    block = (DATA / "queue.js").read_text(encoding="utf-8")
    return block * (100_000 // len(block) + 1)


def _times_of_typing(keys: int) -> list[float]:
    """Milliseconds of the filter while a text is typed at several places of a document."""
    document = _document()
    kept = IncrementalBrackets.of("javascript")
    shown_text("f(a)", document, "", kept)
    chance = random.Random(1)
    places = [at for at, sign in enumerate(document) if sign == "\n"]
    times = []
    text = "\n  if (x) { f(a, [b, 'it"
    while len(times) < keys:
        place = chance.choice(places)
        for typed in range(1, len(text)):
            prefix, suffix = document[:place] + text[:typed], document[place:]
            started = time.thread_time()
            shown_text(text[typed:] + f"{typed}', c]);\n  }}", prefix, suffix, kept)
            times.append((time.thread_time() - started) * 1000)
    return sorted(times)


def test_the_filter_does_no_more_in_a_long_document_than_in_a_short_one() -> None:
    def calls(document: str) -> int:
        kept = IncrementalBrackets.of("javascript")
        shown_text("f(a)", document, "", kept)
        prefix = f"{document}\n  if (x) {{ f("
        return counted_calls(lambda: shown_text("a, [b, 'it', c]);\n  }", prefix, "\n", kept))

    long = _document()
    assert calls(long) <= 2 * calls(long[: len(long) // 20])


@pytest.mark.long
def test_the_filter_takes_three_milliseconds_in_a_long_document() -> None:
    times = _times_of_typing(1000)
    print("p50", times[500], "p95", times[950], "max", times[-1])
    assert times[950] <= 3
