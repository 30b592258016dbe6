"""Renames give exactly the expected text, or a refusal that says why."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from rename_cases import RenameCase, rename_cases
from rename_programs import INDENTATIONS, TEMPLATES, rename_program
from seeds import Amount
from text_cases import data_beside, data_cases

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.editing.renames import EditedPart, rename_changes, told_elsewhere
from lsp_server.editor.next_edits.finding import renamed_elsewhere
from lsp_server.shared.errors import EditRefused


def renamed(instruction: str, text: str, language: str, *, part: str = "") -> str | None:
    """The text after the rename of a part, of all of it where no part is given."""
    start = text.index(part)
    end = start + len(part) if part else len(text)
    where = EditedPart(text, start, end, language)
    rename = rename_changes(instruction, where)
    return None if rename is None else apply_hunks(text, rename.moved(start))


def test_renames_are_exact_in_every_language_and_indentation(amount: Amount) -> None:
    """Programs by chance in every language and indentation; at least 95 % of each come exact."""
    rounds = amount(3, 200)
    seed = random.randrange(1 << 30)
    refused: Counter[tuple[str, str]] = Counter()
    for language in TEMPLATES:
        for indentation in INDENTATIONS:
            for number in range(rounds):
                case = f"{seed}/{language}/{indentation}/{number}"
                program = rename_program(language, indentation, random.Random(case))
                try:
                    got = renamed(program.instruction, program.text, language)
                except EditRefused as refusal:
                    print(case, program.instruction, refusal)
                    refused[language, indentation] += 1
                    continue
                assert got == program.wanted, f"{case}: {program.instruction}"
    assert all(count <= rounds * 0.05 for count in refused.values()), (seed, refused)


@data_cases()
def test_a_name_that_exists_in_the_scope_is_refused_with_its_line(
    instruction: str, language: str, text: str, line: int
) -> None:
    with pytest.raises(EditRefused, match=rf"exists in line {line} already"):
        renamed(instruction, text, language)


@data_cases()
def test_the_same_name_in_another_scope_is_no_collision(
    language: str, text: str, wanted: str
) -> None:
    assert renamed("rename a to b", text, language) == wanted


DATA = data_beside(__file__)
CODE = DATA["CODE"]


@data_cases()
def test_what_makes_no_sense_is_refused(instruction: str, language: str, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason):
        renamed(instruction, CODE[language], language)


@data_cases()
def test_words_that_are_keywords_elsewhere_are_names(new: str, language: str) -> None:
    got = renamed(f"rename a to {new}", CODE[language], language)
    assert got is not None
    assert got.count(new) == 2


@pytest.mark.parametrize("new", ["b c", "b-c", "1b", "'b'"])
def test_what_becomes_no_name_is_left_to_the_model(new: str) -> None:
    assert renamed(f"rename a to {new}", CODE["python"], "python") in (
        None,
        CODE["python"].replace("a)", "b)").replace("return a", "return b"),
    )


@pytest.mark.parametrize(
    "instruction", ["use tabs instead of spaces", "add a docstring", "make it faster", "be a b"]
)
def test_other_instructions_are_no_renames(instruction: str) -> None:
    assert renamed(instruction, CODE["python"], "python") is None


def test_attributes_and_names_of_arguments_are_other_things_in_python() -> None:
    text = "def f(a):\n    return f(a=a) + g(a=a) + x.a\n"
    wanted = "def f(b):\n    return f(b=b) + g(a=b) + x.a\n"
    assert renamed("rename a to b", text, "python") == wanted
    assert renamed("rename a to b", "x.a = y.a\n", "python") == "x.b = y.b\n"


def test_methods_and_attributes_of_a_class_are_renamed_with_their_uses() -> None:
    text = "class A:\n    n = 1\n\n    def f(self):\n        return self.f() + self.n\n"
    assert renamed("rename f to g", text, "python") == text.replace("f(", "g(")
    assert renamed("rename n to m", text, "python") == text.replace("n = 1", "m = 1").replace(
        "self.n", "self.m"
    )


def test_only_the_selected_lines_change() -> None:
    text = "def f(a):\n    return a\n\ndef g(a):\n    return a\n"
    part = "def g(a):\n    return a\n"
    assert renamed("rename a to b", text, "python", part=part) == (
        "def f(a):\n    return a\n\ndef g(b):\n    return b\n"
    )


@data_cases()
def test_what_the_selected_lines_name_is_renamed_in_all_of_the_file_or_told(
    instruction: str, language: str, part: str, text: str, wanted: str, doubt: str
) -> None:
    assert renamed(instruction, text, language, part=part) == wanted
    where = EditedPart(text, text.index(part), text.index(part) + len(part), language)
    rename = rename_changes(instruction, where)
    assert rename is not None
    assert doubt in rename.doubt
    assert bool(doubt) == bool(rename.doubt)


def test_the_use_in_another_file_is_told(tmp_path: Path) -> None:
    text = "class Rect:\n    pass\n"
    (tmp_path / "shapes.py").write_text(text)
    (tmp_path / "cart.py").write_text("\nfrom shapes import Rect\n\nRect()\n")
    where = EditedPart(text, 0, len(text), "python", "shapes.py")
    rename = rename_changes("rename Rect to Box", where)
    assert rename is not None
    told = told_elsewhere("Rect", renamed_elsewhere(rename, where, str(tmp_path), {}))
    assert told.startswith("cart.py line 2, and 1 more: Rect stays in other files")


def test_a_collision_outside_of_the_selected_lines_is_seen() -> None:
    text = "def f(a):\n    b = 1\n    return a\n"
    with pytest.raises(EditRefused, match="line 2"):
        renamed("rename a to b", text, "python", part="    return a\n")


def test_one_function_of_several() -> None:
    text = "function f(a) { return a }\nfunction g(a) { return a }\n"
    wanted = "function f(a) { return a }\nfunction g(b) { return b }\n"
    assert renamed("rename a to b in g", text, "javascript") == wanted
    both = "function f(b) { return b }\nfunction g(b) { return b }\n"
    assert renamed("rename a to b in this code", text, "javascript") == both


def test_sigils_are_no_part_of_a_name() -> None:
    text = '<?php function f($a) { return "$a {$a} a"; }\n'
    wanted = '<?php function f($b) { return "$b {$b} a"; }\n'
    assert renamed("rename $a to $b", text, "php") == wanted
    assert renamed("rename a to b", text, "php") == wanted


WORDS = DATA["WORDS"]


@pytest.mark.parametrize("language", WORDS)
def test_whole_words_are_renamed_where_there_are_no_identifiers(language: str) -> None:
    text = WORDS[language] + WORDS[language].replace("prices", "pricesX").replace("Our", "xprices")
    wanted = re.sub(r"\bprices\b", "items", text)
    assert wanted != text
    assert renamed("rename prices to items", text, language) == wanted


def test_names_with_hyphens_are_words_of_markup() -> None:
    text = '<p class="low-price low-price-x price">low-price</p>\n'
    assert renamed("rename low-price to cost", text, "html") == (
        '<p class="cost low-price-x price">cost</p>\n'
    )
    assert renamed("rename price to cost", text, "html") == text.replace(' price"', ' cost"')


def test_identifiers_of_markup_are_renamed_and_its_text_is_not() -> None:
    text = "<p>n</p><script>let n = 1; // n\n</script>\n"
    assert renamed("rename n to m", text, "html") == text.replace("let n", "let m")
    text = "<n>n</n>\n"
    assert renamed("rename n to m", text, "xml") == "<m>n</m>\n"


@pytest.mark.parametrize("text", ["x = 1  # n\n", 'print("n")\n', "if y:\n    # n\n    pass\n"])
def test_comments_and_strings_beside_code_are_no_names(text: str) -> None:
    with pytest.raises(EditRefused, match="there is no name n"):
        renamed("rename n to m", text, "python")


def test_code_that_cannot_be_read_is_not_renamed_in_part() -> None:
    text = "func f(a: [Int]) {\n  for each in a {\n    if each > _a.count { go(_a) }\n  }\n}\n"
    with pytest.raises(EditRefused, match="line 3 cannot be read"):
        renamed("rename _a to b", text, "swift")


@pytest.mark.parametrize(
    "case", rename_cases("shorthand", "keys", "members", "in strings", "templates"), ids=str
)
def test_a_variable_is_renamed_and_no_key_or_member_of_its_name(case: RenameCase) -> None:
    assert renamed("rename the variable foo to bar", case.text, case.language) == case.after


@pytest.mark.parametrize("case", rename_cases("fields"), ids=str)
def test_a_field_is_renamed_and_no_variable_of_its_name(case: RenameCase) -> None:
    assert renamed("rename the field foo to bar", case.text, case.language) == case.after


@pytest.mark.parametrize("case", rename_cases("imports"), ids=str)
def test_what_is_imported_keeps_the_name_that_it_has_elsewhere(case: RenameCase) -> None:
    assert renamed("rename foo to bar", case.text, case.language) == case.after


@pytest.mark.parametrize("case", rename_cases("unclear"), ids=str)
def test_what_cannot_be_told_apart_is_refused_with_its_line(case: RenameCase) -> None:
    with pytest.raises(EditRefused, match=case.name):
        renamed("rename foo to bar", case.text, case.language)


@pytest.mark.parametrize("case", rename_cases("marked"), ids=str)
def test_what_may_be_anothers_has_a_note(case: RenameCase) -> None:
    where = EditedPart(case.text, 0, len(case.text), case.language)
    rename = rename_changes("rename foo to bar", where)
    assert rename is not None
    assert sum(bool(hunk.note) for hunk in rename.hunks) == int(case.name)


def test_a_class_of_a_page_is_renamed_in_its_style_sheet_and_in_its_tags() -> None:
    page = (
        "<style>.card { color: red }\n.card:hover, .card-b { margin: 0 }</style>\n"
        '<p class="a card card-b" id="card" title="card">card</p><b class=card></b>\n'
    )
    wanted = page.replace(".card ", ".tile ").replace(".card:", ".tile:")
    wanted = wanted.replace("a card ", "a tile ").replace("=card>", "=tile>")
    assert renamed("rename card to tile", page, "html") == wanted
    page = '<style>#a { b: c }</style><i class="a" id="a"></i><label for="a"></label>\n'
    wanted = page.replace("#a", "#x").replace('id="a"', 'id="x"').replace('for="a"', 'for="x"')
    assert renamed("rename a to x", page, "html", part=page) == wanted


STYLED = DATA["STYLED"]


@pytest.mark.parametrize("case", STYLED)
def test_names_of_a_page_s_styles_are_renamed_wherever_they_are_used(case: str) -> None:
    language, page, wanted = STYLED[case]
    old = "a-card" if "hyphens" in case else "card"
    asked = f"rename {old} to tile" + (", also in strings" if "strings" in case else "")
    assert renamed(asked, page, language) == wanted


@data_cases()
def test_a_class_of_a_page_is_renamed_everywhere_or_nowhere(page: str, part: str) -> None:
    with pytest.raises(EditRefused, match=r"card, too; select|tile exists"):
        renamed("rename card to tile", page, "html", part=part or page)


@data_cases()
def test_a_name_that_the_code_of_a_page_would_keep_is_not_renamed(language: str, page: str) -> None:
    with pytest.raises(EditRefused, match=r"card, too; select|makes another name of card"):
        renamed("rename card to tile", page, language)


def test_script_lines_of_a_page_are_renamed_alone() -> None:
    page = "<p id='foo'>foo</p>\n<script>\nlet foo = 1;\nf('foo', foo);\n</script>\n"
    part = "let foo = 1;\nf('foo', foo);\n"
    wanted = page.replace("let foo", "let bar").replace(", foo)", ", bar)")
    assert renamed("rename foo to bar", page, "html", part=part) == wanted
