"""Tokens under the names that a model is to know them by."""

from __future__ import annotations

import json
from collections.abc import Mapping

from accel.errors import BrokenModel
from accel.text.tokenizer import Tokenizer


def renamed(tokenizer: Tokenizer, names: Mapping[str, str]) -> Tokenizer:
    """Return the same tokens under other names, by their names here. Raises BrokenModel where a
    token to be renamed is not an added one."""
    definition = json.loads(tokenizer._definition)
    added = {token["content"]: token for token in definition.get("added_tokens") or []}
    if missing := sorted(names.keys() - added.keys()):
        raise BrokenModel(
            f"the vocabulary has no added token {missing[0]}; name others of its tokens"
        )
    for old, new in names.items():
        added[old]["content"] = new
    vocabulary = definition["model"].get("vocab")
    if isinstance(vocabulary, dict):
        definition["model"]["vocab"] = {
            names.get(name, name): token for name, token in vocabulary.items()
        }
    result = Tokenizer(json.dumps(definition))
    result.chat_template, result.named_tokens = (
        tokenizer.chat_template,
        dict(tokenizer.named_tokens),
    )
    result.template_variables = dict(tokenizer.template_variables)
    result.edit_lines, result.opens_chats = tokenizer.edit_lines, tokenizer.opens_chats
    result.problems = tokenizer.problems
    return result
