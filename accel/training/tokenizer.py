"""The embedded model's tokenizer: byte-level BPE whose newline carries the next line's indent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END_OF_TEXT = "<|endoftext|>"
PAD = "<|pad|>"
MASKS = ("<|mask|>", *(f"<|mask_{number}|>" for number in range(1, 8)))
SPECIAL_TOKENS = (
    END_OF_TEXT,
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|file_sep|>",
    "<|repo_name|>",
    "<|edit_instruction|>",
    "<|edit_before|>",
    "<|edit_after|>",
    MASKS[0],
    PAD,
    *MASKS[1:],
    *(f"<|reserved_{number}|>" for number in range(32)),
)

# A newline takes the indent that follows; one mark or space may lead a word; two digits at most.
PATTERN = (
    r"\r?\n[ \t]*|[^\s\p{L}\p{N}_]?[\p{L}_]+|[ ]?[\p{L}_]+|\p{N}{1,2}"
    r"|[ ]?[^\s\p{L}\p{N}_]+|[ \t]+|\s+"
)


def train_tokenizer(texts: Iterable[str], vocabulary: int = 8192) -> Tokenizer:
    """Train the BPE. Special tokens come first; all 256 bytes are entries, so any text encodes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=32,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> None:
    """Write tokenizer.json and what `AutoTokenizer` needs beside it."""
    named = {END_OF_TEXT, PAD}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        pad_token=PAD,
        extra_special_tokens=[token for token in SPECIAL_TOKENS if token not in named],
        clean_up_tokenization_spaces=False,
        model_max_length=context,
    )
    fast.save_pretrained(folder)


def load_tokenizer(folder: Path) -> Tokenizer:
    """The raw tokenizer of a folder."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def newline_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """Tokens that begin with a line break (spelt Ċ and č in a byte-level vocabulary)."""
    vocabulary = tokenizer.get_vocab()
    return frozenset(number for text, number in vocabulary.items() if text[:1] in ("Ċ", "č"))
