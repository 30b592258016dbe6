"""Words that cannot be names in a language: those of Pygments' lexers, less what is a keyword in
some places only."""

from __future__ import annotations

import keyword
from functools import lru_cache

_ALSO_NAMES = {
    "cpp": "final import module override",
    "csharp": "add alias and ascending async await by descending dynamic equals file from get "
    "global group init into join let managed nameof not notnull on or orderby partial record "
    "remove required scoped select set unmanaged value var when where with yield",
    "java": "exports module open opens permits provides record requires sealed to transitive uses "
    "var when with",
    "javascript": "as async from get of set",
    "kotlin": "by catch constructor dynamic field finally get import init out param property "
    "receiver set where",
    "php": "self parent enum",
    "rust": "auto default macro_rules raw union",
    "swift": "associativity convenience didSet dynamic final get indirect infix lazy left mutating "
    "none nonmutating optional override postfix precedence prefix required right set unowned weak "
    "willSet",
    "tsx": "abstract any as asserts async declare from get global infer is keyof module namespace "
    "number object of override readonly set string symbol type unique unknown",
}
_ALSO_NAMES["typescript"] = _ALSO_NAMES["tsx"]


def is_keyword(word: str, grammar: str) -> bool:
    """Return whether a word is reserved in the language of a grammar; never where no lexer knows
    it."""
    if grammar == "python":
        return keyword.iskeyword(word)
    if word in _ALSO_NAMES.get(grammar, "").split():
        return False
    return _lexed_as_keyword(word, grammar)


@lru_cache(maxsize=256)
def _lexed_as_keyword(word: str, grammar: str) -> bool:
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Keyword, Name, Operator
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(grammar, startinline=True)
    except ClassNotFound:
        return False
    kinds = (Keyword, Name.Builtin.Pseudo, Operator.Word)
    return any(
        text == word and any(kind in of for of in kinds)
        for kind, text in lexer.get_tokens(f"x = {word};\n")
    )
