"""Prompts for instruct models, through their own chat template."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import TokenArray
from accel.errors import UnsupportedPrompt
from accel.text.template import TemplateFailed, render
from accel.text.tokenizer import Tokenizer

_PLACE = "\ue000redraft\ue001"
"""Stands for the message while the template is rendered: private-use characters."""


def chat_tokens(tokenizer: Tokenizer, question: str, answer: str) -> TokenArray:
    """One user message, and the beginning of the assistant's answer. int32 [n].

    The template's own text may hold control tokens; the question is encoded apart from it, so
    that nothing in it can act as one. Raises UnsupportedPrompt when the template is broken.
    """
    try:
        head, tail = template_parts(tokenizer)
    except TemplateFailed as error:
        raise UnsupportedPrompt(
            f"the model's chat template fails ({error}); use another model for edits"
        ) from error
    return np.concatenate(
        [
            tokenizer.encode_with_specials(head),
            tokenizer.encode(question),
            tokenizer.encode_with_specials(tail),
            tokenizer.encode(answer),
        ]
    )


def template_parts(tokenizer: Tokenizer) -> tuple[str, str]:
    """What the template writes before a user's message and behind it. Raises TemplateFailed."""
    assert tokenizer.chat_template is not None, "the caller checks for a template"
    variables = tuple(sorted(tokenizer.template_variables.items()))
    rendered = render(tokenizer.chat_template, _PLACE, variables)
    head, found, tail = rendered.partition(_PLACE)
    if not found:
        raise TemplateFailed("it leaves the message out")
    return head, tail
