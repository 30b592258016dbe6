"""Prompt formats of families of models: one table.

Sources: Qwen2.5-Coder (arXiv 2409.12186, section 3.2), StarCoder 2 (arXiv 2402.19173, section 5.1),
Seed-Coder (arXiv 2506.03524, section 3), the model cards of Mellum, Granite and Codestral.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Order(str, Enum):
    """Position of the suffix in a fill-in-the-middle prompt."""

    SUFFIX_FIRST = "suffix_first"
    """PRE SUF suffix MID prefix: typing only appends, so the KV cache stays."""
    SUFFIX_PREFIX_MIDDLE = "suffix_prefix_middle"
    """SUF suffix PRE prefix MID."""
    PREFIX_FIRST = "prefix_first"
    """PRE lines SUF suffix MID line: the hole begins with the cursor's line, so that the KV cache
    stays while the line is typed."""


class FilePosition(Enum):
    """Position of the paths and texts of files in a prompt with several files."""

    BEFORE = "before"
    """All of it before the first marker of the hole."""
    PATH_INSIDE = "path_inside"
    """Other files before the markers; the path of this file after the prefix marker."""
    INSIDE = "inside"
    """All of it after the prefix marker, as the beginning of the prefix."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of several files in a prompt: ``mark`` path newline text, for each of them. Marks
    without a token in the vocabulary are written as text."""

    mark: str
    position: FilePosition = FilePosition.BEFORE
    repository: str = ""
    """The token before the name of the repository; empty where models read none."""
    behind_name: str = ""
    between: str = ""
    """The text after that of a file, which ends with its line."""


@dataclass(frozen=True, slots=True)
class PromptFamily:
    """Names of tokens, and what is made of them. ``middle`` is None where the prefix simply goes
    on; a vocabulary with a token of ``lacks`` is of another family."""

    name: str
    prefix: str
    suffix: str
    middle: str | None
    order: Order
    files: FileFormat | None = None
    ends: tuple[str, ...] = ()
    """Tokens that end what is written in the hole, beside the three."""
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def hole(self) -> tuple[str, ...]:
        """The tokens around a hole that it has."""
        return tuple(name for name in (self.prefix, self.suffix, self.middle) if name)


_PIPED = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_PLAIN = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")

FAMILIES = (
    PromptFamily(
        "Redraft",
        *_PIPED,
        Order.SUFFIX_FIRST,
        FileFormat("<|file_sep|>", repository="<|repo_name|>", behind_name="\n"),
        ends=("<|endoftext|>", "<|repo_name|>", "<|file_sep|>"),
        needs=("<|edit_instruction|>",),
    ),
    PromptFamily(
        "Qwen2.5-Coder",
        *_PIPED,
        Order.PREFIX_FIRST,
        FileFormat("<|file_sep|>", repository="<|repo_name|>", behind_name="\n"),
        ends=("<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_end|>"),
        needs=("<|file_sep|>",),
    ),
    PromptFamily(
        "CodeGemma",
        *_PIPED,
        Order.PREFIX_FIRST,
        FileFormat("<|file_separator|>"),
        ends=("<|file_separator|>", "<eos>"),
        needs=("<|file_separator|>",),
    ),
    # Granite 4 has a token for file names and was not shown several files.
    PromptFamily("Granite", *_PIPED, Order.PREFIX_FIRST, ends=("<|end_of_text|>", "<|fim_pad|>")),
    PromptFamily(
        "StarCoder2",
        *_PLAIN,
        Order.PREFIX_FIRST,
        FileFormat("<file_sep>", FilePosition.PATH_INSIDE, repository="<repo_name>"),
        ends=("<|endoftext|>", "<fim_pad>", "<file_sep>", "<repo_name>"),
        needs=("<file_sep>",),
    ),
    PromptFamily(
        "StarCoder",
        *_PLAIN,
        Order.PREFIX_FIRST,
        FileFormat("<filename>", repository="<reponame>"),
        ends=("<|endoftext|>", "<fim_pad>", "<filename>", "<reponame>"),
        needs=("<filename>", "<gh_stars>"),
    ),
    PromptFamily(
        "Mellum",
        *_PLAIN,
        Order.SUFFIX_PREFIX_MIDDLE,
        FileFormat("<filename>"),
        ends=("<|endoftext|>", "<fim_pad>", "<filename>", "<reponame>"),
        needs=("<filename>",),
        lacks=("<gh_stars>",),
    ),
    PromptFamily("Stable Code", *_PLAIN, Order.PREFIX_FIRST, ends=("<|endoftext|>", "<fim_pad>")),
    PromptFamily(
        "SantaCoder",
        *("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
        Order.PREFIX_FIRST,
        ends=("<|endoftext|>", "<fim-pad>"),
    ),
    PromptFamily(
        "DeepSeek-Coder",
        *("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
        Order.PREFIX_FIRST,
        ends=("<｜end▁of▁sentence｜>", "<|EOT|>"),
    ),
    PromptFamily(
        "CodeLlama",
        *("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"),
        Order.PREFIX_FIRST,
        ends=("\u2581<EOT>", "</s>"),
    ),
    PromptFamily("CodeLlama", "<PRE>", "<SUF>", "<MID>", Order.PREFIX_FIRST, ends=("<EOT>",)),
    PromptFamily(
        "Seed-Coder",
        *("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
        Order.SUFFIX_PREFIX_MIDDLE,
        FileFormat("<filename>", FilePosition.INSIDE, between="\n"),
        ends=("<[end▁of▁sentence]>",),
    ),
    PromptFamily(
        "GLM-4",
        *("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
        Order.PREFIX_FIRST,
        ends=("<|endoftext|>",),
    ),
    PromptFamily(
        "Codestral",
        *("[PREFIX]", "[SUFFIX]", None),
        Order.SUFFIX_PREFIX_MIDDLE,
        FileFormat("+++++ ", FilePosition.INSIDE, between="\n"),
        ends=("</s>",),
    ),
)
"""Those with more names come before those whose names they share."""
