"""Fill-in-the-middle prompts as text, for servers that take no suffix. Which markers a model learnt
is known by its name; where that is not sure it gets the prefix alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from accel.text.families import FAMILIES, Order, PromptFamily
from lsp_server.editor.remote.answer_events import WORDS

_SEPARATORS = re.compile(r"[-_\s]+")
QWEN, PLAIN, GRANITE = "Qwen2.5-Coder", "Stable Code", "Granite"
"""``PLAIN`` has ``<fim_prefix>`` and the like, the prefix first."""

Named = Callable[[str], "str | None"]


def family_of(names: Iterable[str], template: str = "") -> PromptFamily | None:
    """Return the family of a model by its template for prompts with a suffix, else by what it is
    called, the surest name first; None where no family is known."""
    named = (family_named(name) for name in names)
    return family_in(template) or next((family for family in named if family is not None), None)


def fim_text(family: PromptFamily, prefix: str, suffix: str) -> str:
    """Return the prompt that asks a model of a family for what is between."""
    if family.name == "CodeLlama":
        # With the blanks that SentencePiece makes of the marks in its tokens.
        return f"<PRE> {prefix} <SUF>{suffix} <MID>"
    before, after = family.prefix + prefix, family.suffix + suffix
    middle = family.middle or ""
    if family.order == Order.PREFIX_FIRST:
        return before + after + middle
    return after + before + middle


def family_named(name: str) -> PromptFamily | None:
    """Return the family of a model by its name, as servers and stores give it."""
    written = _SEPARATORS.sub("-", name.lower())
    for pattern, family in _NAMES:
        if re.search(pattern, written):
            by_version = _BY_VERSION.get(family or "")
            family_name = by_version(written) if by_version is not None else family
            return next((each for each in FAMILIES if each.name == family_name), None)
    return None


def family_in(template: str) -> PromptFamily | None:
    """The family whose markers are in the template of prompts with a suffix."""
    for family in FAMILIES:
        if all(mark.strip("\u2581") in template for mark in family.hole):
            return family
    return None


def _qwen(name: str) -> str | None:
    """From Qwen2.5 on the vocabulary has the tokens; a number before ``b`` is a size."""
    if "coder" in name:
        return QWEN
    match = re.search(r"qwen-?(\d(?:[.-]?\d)?)(?![\d.]*b\b)", name)
    version = float(match[1].replace("-", ".")) if match else 0.0
    return QWEN if 2.5 <= version < 10 or version >= 25 else None


def _granite(name: str) -> str | None:
    """Granite 4 has other tokens than those before it."""
    if re.search(r"guardian|speech|vision|docling|timeseries|geospatial", name):
        return None
    match = re.search(r"granite-?v?(\d+)(?![\d.]*[bm]\b)", name)
    return GRANITE if match and int(match[1]) >= 4 else PLAIN


def _deepseek(name: str) -> str | None:
    if "distill" in name:
        return QWEN if "qwen" in name else None
    has_tokens = re.search(r"coder|deepseek-(?:v2\.5|v[3-9]|r1)", name)
    return "DeepSeek-Coder" if has_tokens else None


def _code_llama(name: str) -> str | None:
    """Return those of 34B and for Python alone were not taught to fill in."""
    return None if re.search(r"python|34b|70b|phind|wizard", name) else "CodeLlama"


_BY_VERSION: dict[str, Named] = {
    each.__name__: each for each in (_code_llama, _deepseek, _granite, _qwen)
}
_NAMES: list[tuple[str, str | None]] = WORDS["families"]
"""Parts of names, the first that fits counts: some names hold those of others."""
