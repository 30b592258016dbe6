"""Words that cannot be names in a language: those of Pygments' lexers, less what is a keyword in
some places only."""

from __future__ import annotations

import keyword
from functools import lru_cache

from lsp_server.text.syntax.languages import TABLE


def is_keyword(word: str, grammar: str) -> bool:
    """Return whether a word is reserved in a grammar's language, as far as a lexer knows."""
    if grammar == "python":
        return keyword.iskeyword(word)
    if word in TABLE["also_names"].get(grammar, "").split():
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
