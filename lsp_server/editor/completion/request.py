"""A request for a completion, without LSP: texts and options."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX_CHARACTERS = 24_000
SUFFIX_CHARACTERS = 8_000
STEP = 8_000
"""The window's start moves in such steps, so that the prompt's start stays while one types."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One place in one document."""

    document: str
    """URI, the key under which suggestions are remembered."""
    path: str
    """Path to tell the model, relative to the workspace where there is one."""
    workspace: str
    language: str
    prefix: str
    suffix: str
    secret: bool = False
    """Something of it may be a secret that the user allows: nothing of it is written anywhere."""
    invoked: bool = False
    """Asked for by hand: several suggestions are expected, and waiting is no harm."""
    threshold: float = 0.0
    """The least chance to be right that text is shown with; 0 for all of it, as by hand."""

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @property
    def line_after(self) -> str:
        """The cursor's line from the cursor on."""
        return self.suffix.split("\n", 1)[0]

    @property
    def windowed_prefix(self) -> str:
        """The end of a long prefix, from a line start that moves in large steps only."""
        prefix = self.prefix
        if len(prefix) <= PREFIX_CHARACTERS:
            return prefix
        start = (len(prefix) - PREFIX_CHARACTERS + STEP - 1) // STEP * STEP
        line = prefix.find("\n", start) + 1
        return prefix[line:] if line else prefix[start:]

    @property
    def windowed_suffix(self) -> str:
        """The beginning of a long suffix, to a line end."""
        suffix = self.suffix
        if len(suffix) <= SUFFIX_CHARACTERS:
            return suffix
        end = suffix.rfind("\n", 0, SUFFIX_CHARACTERS)
        return suffix[: end + 1] if end > 0 else suffix[:SUFFIX_CHARACTERS]

    @property
    def wants_several_lines(self) -> bool:
        """True if a block may be written here: on an empty line, or after a block's header."""
        if self.line_after.strip(" \t\r)]}>;,:\"'"):
            return False
        before = self.line_before.rstrip()
        return not before.strip() or before.endswith((":", "{", "(", "[", "=>", "->"))
