"""Training units: what one sample looks like as token ids with a loss weight for each.

The formats (suffix first is the order that prompts use):

    <|fim_suffix|>SUFFIX<|fim_prefix|>PREFIX<|fim_middle|>MIDDLE<|endoftext|>
    <|fim_prefix|>PREFIX<|fim_suffix|>SUFFIX<|fim_middle|>MIDDLE<|endoftext|>
    <|edit_instruction|>INSTRUCTION<|edit_before|>BEFORE<|edit_after|>AFTER<|endoftext|>
        (PLACE_TOKEN and PLACE_END_TOKEN stand in BEFORE around what the instruction is about)
    [<|file_sep|>PATH newline]TEXT<|endoftext|>

Text is cut by characters. Prefix and middle are tokenised as one text and divided at the last
token border before the cursor, as a prompt is that backs off to it. The middle token says that a
hole comes: without it models never learnt to end a line. It stands before the line of the hole,
or before the line above it where the hole begins a line, because what looks a few tokens back
meets no marker there: the token right behind one is harder to tell.
"""

from __future__ import annotations

import ast
import math
import random
import re
import textwrap
import warnings
from dataclasses import dataclass

from tokenizers import Tokenizer

from accel.text.edit_rules.markers import cut, cut_at, middle_place
from accel.training.corpus import SourceFile
from accel.training.edits import EditExample, draw_kind, excerpts_of, make_edit
from accel.training.tokenizer import SPECIAL_TOKENS, newline_tokens

MIDDLE_WEIGHT = 4.0
AROUND_WEIGHT = 0.7
CHANGED_WEIGHT = 5.0
UNSURE_WEIGHT = 4.0
COPIED_WEIGHT = 1.5
BEFORE_WEIGHT = 0.5
INSTRUCTION_WEIGHT = 0.2
SUFFIX_FIRST_SHARE = 0.9
LEFT_TO_RIGHT_SHARE = 0.2
SHORTEST_PIECE = 0.12
SUBSTITUTION_SHARE = 0.75
OMISSION_SHARE = 0.3
PLACE_TOKEN = "<|reserved_0|>"
PLACE_END_TOKEN = "<|reserved_1|>"
MARKED_SHARE = 0.95
DRILL_MARKED_SHARE = 0.75
CANONICAL_SHARE = 0.85
EXCERPT_SHARE = 0.65
MOST_AROUND = 3
NARROW_SHARE = 0.12
MOST_EXCERPTS = 4
HEADER_SHARE = 0.3


@dataclass(frozen=True)
class Unit:
    """Token ids and, for each, the weight of its prediction from what stands before."""

    ids: list[int]
    weights: list[float]

    def __post_init__(self) -> None:
        assert len(self.ids) == len(self.weights)


class UnitMaker:
    """Makes units with a tokenizer that has the special tokens of `tokenizer.SPECIAL_TOKENS`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # Source that spells a special token out is text.
        tokenizer.encode_special_tokens = True
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer.get_vocab_size()
        self.ordinary = len(SPECIAL_TOKENS)
        self.end = self._special("<|endoftext|>")
        self.prefix = self._special("<|fim_prefix|>")
        self._suffix = self._special("<|fim_suffix|>")
        self.middle = self._special("<|fim_middle|>")
        self._file = self._special("<|file_sep|>")
        self._instruction = self._special("<|edit_instruction|>")
        self.before = self._special("<|edit_before|>")
        self.after = self._special("<|edit_after|>")
        self._place = self._special(PLACE_TOKEN)
        self._place_end = self._special(PLACE_END_TOKEN)
        self._newlines = newline_tokens(tokenizer)

    def _special(self, token: str) -> int:
        found = self.tokenizer.token_to_id(token)
        assert found is not None, f"the tokenizer lacks {token}"
        return int(found)

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def left_to_right(self, text: str, path: str | None, ends: bool) -> Unit:
        """Plain text; `ends` tells that the file ends here, so that the end is learnt."""
        head = [self._file, *self._encode(path + "\n")] if path else []
        body = self._encode(text)
        ids = [*head, *body, self.end]
        weights = [0.1] * len(head) + [1.0] * len(body) + [1.0 if ends else 0.0]
        if not head and weights:
            weights[0] = 0.0
        return Unit(ids, weights)

    def fill_in_the_middle(self, text: str, start: int, end: int, suffix_first: bool) -> Unit:
        """A hole of characters start to end, to be filled from both sides."""
        suffix = self._encode(text[end:])
        given, rest = self.divided(text[:end], start)
        after = [AROUND_WEIGHT] * len(suffix)
        middle = [MIDDLE_WEIGHT] * (len(rest) + 1)
        if suffix_first:
            place = middle_place(given, self._newlines)
            units = [self._suffix, *suffix, self.prefix, *given[:place], self.middle]
            weights = [0.0, *after, 0.0, *[AROUND_WEIGHT] * place, 0.0]
            units += given[place:]
            weights += [AROUND_WEIGHT] * (len(given) - place)
        else:
            units = [self.prefix, *given, self._suffix, *suffix, self.middle]
            weights = [0.0, *[AROUND_WEIGHT] * len(given), 0.0, *after, 0.0]
        return Unit([*units, *rest, self.end], [*weights, *middle])

    def divided(self, text: str, cursor: int) -> tuple[list[int], list[int]]:
        """Tokens of a text up to the last border before the cursor, and those behind it."""
        joint = self.tokenizer.encode(text, add_special_tokens=False)
        border = sum(1 for _, token_end in joint.offsets if token_end <= cursor)
        return list(joint.ids[:border]), list(joint.ids[border:])

    def copy_drill(self, rng: random.Random, longest: int = 100) -> Unit:
        """Tokens by chance to be copied, mostly with one run of tokens replaced throughout, or
        runs marked to be left out.

        Nothing but looking back predicts them, and where they are drawn from few, or repeat
        whole runs, only looking far back. longest: tokens to copy, a few inserted ones aside.
        """
        before = self._drill_tokens(rng, rng.randint(6, longest))
        instruction: list[int] = self._encode(rng.choice(("keep", "copy", "no change", "same")))
        after, weights = list(before), [COPIED_WEIGHT] * len(before)
        if rng.random() < SUBSTITUTION_SHARE:
            old = [self._any_token(rng) for _ in range(rng.randint(1, 3))]
            new = [self._any_token(rng) for _ in range(rng.randint(1, 3))]
            instruction = [*self._encode("rename "), *old, *self._encode(" to "), *new]
            marked = rng.random() < DRILL_MARKED_SHARE
            if marked and rng.random() < OMISSION_SHARE:
                instruction, new = self._encode("remove"), []
            most = 1 if rng.random() < 0.3 else 6
            places = sorted(rng.sample(range(len(before)), min(len(before), rng.randint(1, most))))
            for place in reversed(places):
                if not new:
                    old = [self._any_token(rng) for _ in range(rng.randint(1, 12))]
                before[place:place] = [self._place, *old, self._place_end] if marked else old
                after[place:place] = new
                # The tokens after the new ones are hard: the copy has to find its way back.
                weights[place : place + 2] = [CHANGED_WEIGHT] * (
                    len(new) + len(weights[place : place + 2])
                )
        ids = [self._instruction, *instruction, self.before, *before, self.after, *after]
        blank = [0.0] * (len(instruction) + len(before) + 3)
        return Unit([*ids, self.end], [*blank, *weights, CHANGED_WEIGHT])

    def _any_token(self, rng: random.Random) -> int:
        return rng.randrange(self.ordinary, self.vocabulary)

    def _drill_tokens(self, rng: random.Random, count: int) -> list[int]:
        """Tokens from a small pool, one by one or in runs that come again."""
        few = round(math.exp(rng.uniform(math.log(4), math.log(100))))
        pool = [self._any_token(rng) for _ in range(few)]
        if rng.random() < 0.6:
            return [rng.choice(pool) for _ in range(count)]
        runs = [rng.choices(pool, k=rng.randint(3, 10)) for _ in range(rng.randint(2, 6))]
        found: list[int] = []
        while len(found) < count:
            found += [*rng.choice(runs), *rng.choices(pool, k=rng.randint(0, 2))]
        return found[:count]

    def edit(self, edit: EditExample, *, marked: bool = True) -> Unit:
        """An instruction edit; the places that it is about are marked or not.

        Tokens that the edit made count most, and the next two; then those that the three tokens
        before do not lead to in the text before the edit, or not to them alone.
        """
        if not (marked and edit.places):
            before = self._encode(edit.before)
            after = self.tokenizer.encode(edit.after, add_special_tokens=False)
            changed = [
                any(start <= stop and begin < end for begin, stop in edit.changed)
                for start, end in after.offsets
            ]
            return self._edit_unit(self._encode(edit.instruction), before, after.ids, changed)
        shown: list[int] = []
        for number, piece in enumerate(cut(edit.before, edit.places)):
            ids = self._encode(piece)
            shown += [self._place, *ids, self._place_end] if number % 2 else ids
        made: list[int] = []
        changed = []
        for number, piece in enumerate(cut(edit.after, edit.changed)):
            pieces = cut_at(piece, edit.parts[1::2]) if number % 2 else [piece]
            ids = [token for part in pieces for token in self._encode(part)]
            made += ids
            changed += [number % 2 == 1 or (number > 0 and n < 2) for n in range(len(ids))]
        wording = [token for part in edit.parts for token in self._encode(part)]
        return self._edit_unit(wording, shown, made, changed)

    def _edit_unit(
        self, wording: list[int], before: list[int], after: list[int], changed: list[bool]
    ) -> Unit:
        marks = (self._place, self._place_end)
        copied = _copy_weights([token for token in before if token not in marks], after)
        weights = [
            CHANGED_WEIGHT if new else weight for new, weight in zip(changed, copied, strict=True)
        ]
        shown = [0.0 if token in marks else BEFORE_WEIGHT for token in before]
        ids = [self._instruction, *wording, self.before, *before, self.after, *after]
        lead = [0.0, *[INSTRUCTION_WEIGHT] * len(wording), 0.0, *shown, 0.0]
        return Unit([*ids, self.end], [*lead, *weights, CHANGED_WEIGHT])


def _copy_weights(before: list[int], after: list[int]) -> list[float]:
    """What each token of `after` counts when it is a copy: more where copying is not obvious."""
    following: dict[tuple[int, ...], set[int]] = {}
    for place in range(3, len(before)):
        following.setdefault(tuple(before[place - 3 : place]), set()).add(before[place])
    sure = [
        len(following.get(tuple(after[place - 3 : place]), ())) == 1 for place in range(len(after))
    ]
    return [COPIED_WEIGHT if found else UNSURE_WEIGHT for found in sure]


def pieces(text: str, most: int, rng: random.Random) -> list[str]:
    """A text cut at line ends into pieces of at most about `most` characters.

    Cuts prefer lines that start a definition, the less indented the better.
    """
    lines = text.splitlines(keepends=True)
    found: list[str] = []
    begin = 0
    while begin < len(lines):
        wanted = math.exp(rng.uniform(math.log(SHORTEST_PIECE), 0.0)) * most
        length, end, best = 0, begin, (99, begin)
        while end < len(lines) and (length + len(lines[end]) <= wanted or end == begin):
            length += len(lines[end])
            end += 1
            if end < len(lines) and length > 0.5 * wanted:
                line = lines[end]
                indent = len(line) - len(line.lstrip())
                rank = indent if line.lstrip().startswith(("def ", "class ", "@", "async ")) else 90
                if line.strip() and rank <= best[0]:
                    best = (rank, end)
        cut = best[1] if best[1] > begin and end < len(lines) else end
        found.append("".join(lines[begin:cut]))
        begin = cut
    return [piece for piece in found if len(piece.strip()) >= 80]


def draw_hole(text: str, rng: random.Random) -> tuple[int, int]:
    """Start and end of a hole: whole line, to the line's end, block, span, nothing."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    filled = [s for s in starts if text[s : s + 1] not in ("", "\n")] or [0]
    line = rng.choice(filled)
    stop = text.find("\n", line)
    line_end = len(text) if stop < 0 else stop
    way = rng.random()
    if way < 0.50:
        newline = rng.random() < 0.3 and line_end < len(text)
        indent = len(text[line:line_end]) - len(text[line:line_end].lstrip())
        begin = line + (indent if rng.random() < 0.3 else 0)
        return begin, line_end + newline
    if way < 0.74:
        return rng.randint(line, line_end), line_end
    if way < 0.86:
        return _block(text, starts, line, rng)
    if way < 0.95:
        begin = rng.randint(0, len(text))
        return begin, min(len(text), begin + int(rng.random() ** 2 * 600))
    begin = rng.randint(0, len(text))
    return begin, min(len(text), begin + rng.randint(0, 3))


def _block(text: str, starts: list[int], line: int, rng: random.Random) -> tuple[int, int]:
    """From a line, or a place in it, to the end of the lines at least as much indented."""
    indent = len(text[line:]) - len(text[line:].lstrip(" "))
    end = line
    for start in starts[starts.index(line) :]:
        stop = text.find("\n", start)
        content = text[start : len(text) if stop < 0 else stop]
        if content.strip():
            if len(content) - len(content.lstrip(" ")) < indent:
                break
            end = start + len(content)
        if end - line > 900:
            break
    begin = line if rng.random() < 0.6 else rng.randint(line, end)
    return begin, end


def text_units(
    file: SourceFile, maker: UnitMaker, row_length: int, rng: random.Random
) -> list[Unit]:
    """One file as units of at most `row_length` tokens, its holes drawn anew at every call."""
    found: list[Unit] = []
    waiting = pieces(file.text, int(row_length * 2.9), rng)[::-1]
    last = waiting[0] if waiting else ""
    first = True
    while waiting:
        piece = waiting.pop()
        if rng.random() < LEFT_TO_RIGHT_SHARE:
            header = file.path if first or rng.random() < HEADER_SHARE else None
            unit = maker.left_to_right(piece, header, ends=piece is last)
        else:
            start, end = draw_hole(piece, rng)
            unit = maker.fill_in_the_middle(piece, start, end, rng.random() < SUFFIX_FIRST_SHARE)
        first = False
        if len(unit.ids) <= row_length:
            found.append(unit)
        elif piece.count("\n") > 1:
            lines = piece.splitlines(keepends=True)
            half = len(lines) // 2
            waiting += ["".join(lines[half:]), "".join(lines[:half])]
    return found


def definitions(file: SourceFile, most: int) -> list[str]:
    """Functions and classes of a file as whole lines, of 60 to `most` characters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(file.text)
    lines = file.text.splitlines(keepends=True)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            text = "".join(lines[first - 1 : node.end_lineno])
            if 60 <= len(text) <= most:
                found.append(text)
    return found


def edit_units(
    sources: list[str], maker: UnitMaker, row_length: int, tokens: int, rng: random.Random
) -> list[Unit]:
    """Edits of the given definitions until they make up `tokens` tokens."""
    found: list[Unit] = []
    total = tries = 0
    # Long functions are few, and copying them is what has to be learnt.
    shares = [len(source) ** 0.5 for source in sources]
    while total < tokens and sources and tries < 20 * len(sources) + 100:
        kind, tries = draw_kind(rng), tries + 1
        for _ in range(6):
            source = rng.choices(sources, shares)[0]
            if rng.random() < 0.25:
                source = textwrap.dedent(source)
            if rng.random() < 0.25:
                source = source.rstrip("\n")
            if rng.random() < NARROW_SHARE:
                source = _narrowed(source)
            canonical = rng.random() < CANONICAL_SHARE
            edit = make_edit(source, kind, rng.getrandbits(48), canonical=canonical)
            if edit is None:
                continue
            # Prompts mark the places of what they recognise, and say it in the same wording always.
            marked = canonical and rng.random() < MARKED_SHARE
            asked = [edit]
            if marked and edit.places and rng.random() < EXCERPT_SHARE:
                every = excerpts_of(
                    edit, min(rng.randint(0, MOST_AROUND), rng.randint(0, MOST_AROUND))
                )
                asked = rng.sample(every, min(len(every), MOST_EXCERPTS))
            units = [maker.edit(one, marked=marked) for one in asked]
            if all(len(unit.ids) <= row_length for unit in units):
                found += units
                total += sum(len(unit.ids) for unit in units)
                break
    return found


def _narrowed(source: str) -> str:
    """With half the indentation, as some people write: packages seldom have it."""
    return re.sub(r"^ +", lambda found: found[0][: len(found[0]) // 2], source, flags=re.MULTILINE)


def copy_units(maker: UnitMaker, row_length: int, tokens: int, rng: random.Random) -> list[Unit]:
    """Copy drills that fit into rows until they make up `tokens` tokens."""
    found: list[Unit] = []
    total = 0
    while total < tokens:
        found.append(maker.copy_drill(rng, row_length // 4))
        total += len(found[-1].ids)
    return found
