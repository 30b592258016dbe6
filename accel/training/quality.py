"""What the embedded model knows of code that it never saw, for `redraft bench quality`.

Greedy decoding gives the reference exactly when, at each place of the reference, the most likely
token is the reference's own. So one forward over prompt and reference decides a case; where an edit
begins to spell the same text in other tokens, it is decoded to its end.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoModelForCausalLM

from accel.engine import Engine
from accel.text.edit_rules.excerpts import AROUND
from accel.text.edit_rules.recognition import as_trained
from accel.text.edit_rules.source_region import apply
from accel.text.families import Order
from accel.training.corpus import SourceFile
from accel.training.edits import EXACT_KINDS, EditExample, excerpts_of, make_edit
from accel.training.errors import TrainingError
from accel.training.tokenizer import load_tokenizer
from accel.training.units import UnitMaker, definitions

CONTEXT = 1024
LONGEST_EDIT = 2000
_ORDERS = (Order.MIDDLE_BEFORE_LINE, Order.PREFIX_ALONE)


@dataclass
class ExactMatches:
    """How many of how many were exactly right."""

    right: int = 0
    total: int = 0

    def count(self, right: bool) -> None:
        """Take one case in."""
        self.right += right
        self.total += 1

    def add(self, other: ExactMatches) -> None:
        """Take another tally's cases in."""
        self.right += other.right
        self.total += other.total

    @property
    def share(self) -> float:
        """Right by total; nan without a case."""
        return self.right / self.total if self.total else math.nan

    @property
    def all_right(self) -> bool:
        """Whether nothing was wrong."""
        return self.right == self.total

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {"right": self.right, "total": self.total, "share": round(self.share, 4)}


@dataclass
class Judge:
    """A model and its tokenizer; says whether greedy decoding gives a reference."""

    folder: Path
    model: Any = field(init=False)
    tokenizer: Tokenizer = field(init=False)
    maker: UnitMaker = field(init=False)

    def __post_init__(self) -> None:
        if not (self.folder / "config.json").exists():
            raise TrainingError(f"{self.folder} holds no model: give the folder of a trained one")
        self.model = AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()
        self.tokenizer = load_tokenizer(self.folder)
        self.maker = UnitMaker(self.tokenizer)
        self._bytes = [_token_bytes(self.tokenizer, n) for n in range(self.model.config.vocab_size)]
        self._newlines = torch.tensor([piece[:1] in (b"\n", b"\r") for piece in self._bytes])

    def logits(self, ids: list[int], keep: int) -> Tensor:
        """float32 [keep, vocabulary]: what is predicted after each of the last `keep` tokens."""
        with torch.inference_mode():
            out = self.model(torch.tensor([ids]), use_cache=False, logits_to_keep=keep)
        found: Tensor = out.logits[0]
        return found

    def edit_tokens(self, edit: EditExample) -> ExactMatches:
        """Tokens of an edit's answer, its end too, that are most likely after right ones.

        When all are, the raw greedy answer is exactly the edit's text.
        """
        return self._tokens_of(as_asked(edit))

    def _tokens_of(self, asked: EditExample) -> ExactMatches:
        ids = self.maker.edit(asked).ids
        split = ids.index(self.maker.after) + 1
        best = self.logits(ids[:-1], len(ids) - split).argmax(-1).tolist()
        right = sum(a == b for a, b in zip(best, ids[split:], strict=True))
        if right < len(best) and self._spells(ids[:split], ids[split:], best):
            right = len(best)
        return ExactMatches(right, len(best))

    def _spells(self, prompt: list[int], reference: list[int], best: list[int]) -> bool:
        """Whether greedy decoding writes the reference's text in other tokens, and ends. best: the
        likeliest token at each place of the reference, which ends with the end."""
        place = next(n for n, token in enumerate(best) if token != reference[n])
        written, token = reference[:place], best[place]
        text = self._spelt(reference[:-1])
        while token != self.maker.end:
            written = [*written, token]
            if not self._bytes[token] or not text.startswith(self._spelt(written)):
                return False
            token = int(self.logits([*prompt, *written], 1)[0].argmax())
        return self._spelt(written) == text

    def _spelt(self, tokens: list[int]) -> bytes:
        return b"".join(self._bytes[token] for token in tokens)

    def excerpt_tokens(self, edit: EditExample) -> ExactMatches:
        """As ``edit_tokens``, of the answers that editors get: where the places are known they are
        for the lines around them (`accel.text.prompts.excerpt_prompts`), the rest stays."""
        parts, changes = as_trained(edit.instruction, edit.before)
        if not changes:
            return self.edit_tokens(edit)
        answers = ExactMatches()
        after, spans = apply(edit.before, changes)
        places = tuple((each.start, each.end) for each in changes)
        known = replace(edit, parts=parts, places=places, changed=tuple(spans))
        for asked in excerpts_of(known, AROUND):
            answers.add(self._tokens_of(asked))
        if after != edit.after:
            # The rule takes the instruction for another edit, and keeps lines that should change.
            answers.right = 0
        return answers

    def line_is_exact(self, prefix: str, suffix: str, line: str, order: Order) -> bool:
        """Whether the first line that greedy decoding puts between prefix and suffix is `line`.

        order: one of `_ORDERS`. The prompt ends at the last token border before the cursor; the
        tokens that follow are held to the characters typed after it, as the engine does.
        """
        given, reference = self.maker.divided(prefix + line, len(prefix))
        ids = [*given, *reference]
        if order != Order.PREFIX_ALONE:
            unit = self.maker.fill_in_the_middle(
                prefix + line + suffix, len(prefix), len(prefix) + len(line), True
            )
            ids = unit.ids[:-1]
        typed = prefix.encode()[sum(len(self._bytes[n]) for n in given) :]
        logits = self.logits(ids, len(reference) + 1)
        for place, token in enumerate(reference):
            scores = logits[place]
            if typed:
                allowed = [
                    piece != b"" and (piece.startswith(typed) or typed.startswith(piece))
                    for piece in self._bytes
                ]
                scores = scores.masked_fill(~torch.tensor(allowed), -math.inf)
                typed = typed[len(self._bytes[token]) :]
            if int(scores.argmax()) != token:
                return False
        last = int(logits[len(reference)].argmax())
        return last == self.maker.end or bool(self._newlines[last])

    def bits_per_byte(self, texts: list[str]) -> float:
        """Loss over texts cut into windows of CONTEXT tokens, each read from its start."""
        nats, size = 0.0, 0
        for text in texts:
            ids = self.tokenizer.encode(text, add_special_tokens=False).ids
            for start in range(0, len(ids), CONTEXT):
                window = ids[start : start + CONTEXT]
                if len(window) > 1:
                    logits = self.logits(window[:-1], len(window) - 1)
                    targets = torch.tensor(window[1:])
                    nats += float(
                        torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
                    )
                    size += sum(len(self._bytes[n]) for n in window[1:])
        return nats / math.log(2.0) / max(1, size)


def as_asked(edit: EditExample) -> EditExample:
    """The edit as a prompt asks for it: in the wording for what is recognised, with its marks."""
    parts, changes = as_trained(edit.instruction, edit.before)
    return replace(edit, parts=parts, places=tuple((each.start, each.end) for each in changes))


def _byte_of_character() -> dict[str, int]:
    """The printable stand-in of each byte in a byte-level vocabulary (GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(256 + number): byte for number, byte in enumerate(others)}


_BYTE_OF_CHARACTER = _byte_of_character()


def _token_bytes(tokenizer: Tokenizer, number: int) -> bytes:
    """The bytes of a token; empty for a special one."""
    token = tokenizer.id_to_token(number)
    if token is None or token.startswith("<|"):
        return b""
    return bytes(_BYTE_OF_CHARACTER[character] for character in token)


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        raise TrainingError(f"{path} is missing: give the folder of the cases with --cases")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def repository_files(cases: Path) -> list[SourceFile]:
    """The Python files of the case repositories."""
    return [
        SourceFile(path.stem, row["path"], row["content"])
        for path in sorted((cases / "repos").glob("*.jsonl"))
        for row in _rows(path)
    ]


def edits_of(files: list[SourceFile], kind: str, count: int, seed: int = 0) -> list[EditExample]:
    """`count` edits of one kind (fewer where it seldom applies) of functions of the files."""
    rng = random.Random(f"{kind} {seed}")
    functions = [text for file in files for text in _definitions(file) if _is_function(text)]
    rng.shuffle(functions)
    found: list[EditExample] = []
    # A kind that seldom applies comes to several edits of one function by other seeds.
    for attempt in range(4 * len(functions)):
        edit = make_edit(functions[attempt % len(functions)], kind, attempt)
        if edit is not None and len(edit.after) <= 6000:
            found.append(edit)
        if len(found) == count:
            break
    return found


def _definitions(file: SourceFile) -> list[str]:
    try:
        return definitions(file, 4000)
    except (SyntaxError, ValueError):
        return []


def _is_function(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    head = next((line for line in lines if line.startswith(("def ", "async def ", "class "))), "")
    return not head.startswith("class ")


def measure(
    model_dir: Path, cases_dir: Path, *, per_kind: int = 40, infilling: int = 259
) -> dict[str, Any]:
    """Bits per byte, single-line infilling and instruction edits on code not trained on.

    per_kind: edits of each kind, of functions of the case repositories; infilling: at most so many
    cases. Raises TrainingError where model or cases are missing.
    """
    judge = Judge(model_dir)
    files = repository_files(cases_dir)
    by_repository = {
        name: round(judge.bits_per_byte(_sample([f for f in files if f.package == name])), 4)
        for name in sorted({file.package for file in files})
    }
    lines = {order.value: ExactMatches() for order in _ORDERS}
    rows = _rows(cases_dir / "completion_infilling.jsonl")
    for row in rows[:: max(1, len(rows) // infilling)][:infilling]:
        # As in an editor: the line break after the line stands in the suffix.
        line = row["reference"].rstrip("\n")
        rest = row["reference"][len(line) :]
        for order in _ORDERS:
            exact = judge.line_is_exact(row["prefix"], rest + row["suffix"], line, order)
            lines[order.value].count(exact)
    chosen = Engine.load(model_dir, dtype="fp32", threads=1).fim_order
    used = (chosen if chosen in _ORDERS else _ORDERS[0]).value
    return {
        "bits_per_byte": round(sum(by_repository.values()) / max(1, len(by_repository)), 4),
        "bits_per_byte_by_repository": by_repository,
        "infilling_order": used,
        "infilling_single_line": lines[used].as_dict(),
        "infilling_by_order": {order: tally.as_dict() for order, tally in lines.items()},
        **_edits(judge, files, per_kind),
    }


def _edits(judge: Judge, files: list[SourceFile], per_kind: int) -> dict[str, Any]:
    """Exact edits by kind: as editors get them, and the whole selection in one answer."""
    served = {kind: ExactMatches() for kind in EXACT_KINDS}
    whole = {kind: ExactMatches() for kind in EXACT_KINDS}
    tokens, whole_tokens = ExactMatches(), ExactMatches()
    for kind in EXACT_KINDS:
        for edit in edits_of(files, kind, per_kind):
            if len(judge.maker.edit(edit).ids) <= LONGEST_EDIT:
                answer = judge.excerpt_tokens(edit)
                served[kind].count(answer.all_right)
                tokens.add(answer)
                answer = judge.edit_tokens(edit)
                whole[kind].count(answer.all_right)
                whole_tokens.add(answer)
    return {
        **_by_kind("edits", served),
        "edit_tokens": tokens.as_dict(),
        **_by_kind("whole_edits", whole),
        "whole_edit_tokens": whole_tokens.as_dict(),
    }


def _by_kind(name: str, kinds: dict[str, ExactMatches]) -> dict[str, Any]:
    every = ExactMatches()
    for tally in kinds.values():
        every.add(tally)
    shares = [tally.share for tally in kinds.values() if tally.total]
    return {
        name: every.as_dict(),
        f"{name}_mean_of_kinds": round(sum(shares) / max(1, len(shares)), 4),
        f"{name}_by_kind": {kind: tally.as_dict() for kind, tally in kinds.items()},
    }


def _sample(files: list[SourceFile], most: int = 60_000) -> list[str]:
    chosen, total = [], 0
    for file in sorted(files, key=lambda file: -len(file.text)):
        if total < most:
            chosen.append(file.text[: most - total])
            total += len(chosen[-1])
    return chosen
