"""Fills in place holders of answers, such as ``# ... rest of the code unchanged``, from the
original; refuses where what is left out is not clear: applied, it would delete code."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from lsp_server.shared.errors import EditRefused

REFUSED = (
    "the model left out a part of the code ({shown}), and it is not clear which; edit again or "
    "select fewer lines"
)
MOST_CELLS = 400_000
"""Answers and originals of more lines, one by the other, are not compared."""
MARGIN = 0.9
"""What is left out is clear where every other reading costs so many changed lines more."""
ALIKE = 0.5
ALIKE_BY_BEGINNING = 0.55
SAME_NAME = 0.05
"""What it costs to have a definition changed."""
NEVER = 1e6
SHOWN_CHARACTERS = 40

_ELLIPSIS = r"(?:\.{3,}|…|\. \. \.)"
_MARKS = r"#%;'\"!/*\-<>{}()\[\]|\\=~:@^+&$⍝`"
_STRIPPED = re.compile(rf"^[\s{_MARKS}]+|[\s{_MARKS}]+$")
_WORD_MARK = re.compile(r"^\s*(?:rem|dnl|c|--\[\[|comment)\s+(?=\W*\w)", re.IGNORECASE)
_IS_MARKED = re.compile(
    r"^\s*(?:#|//|/\*|\*|--|;|%|'|\"|!|<!--|\{#|\{/\*|\(\*|\{-|<%|@\*|::|rem\b|dnl\b|⍝|\||\\)",
    re.IGNORECASE,
)
_ONLY_DOTS = re.compile(rf"^[\s{_MARKS}]*{_ELLIPSIS}[\s{_MARKS}]*$")
_BARE_DOTS = re.compile(rf"^\s*[\[({{<]?\s*{_ELLIPSIS}\s*[\])}}>]?\s*$")

_WHAT = (
    r"(?:code|codes|function|functions|method|methods|class|classes|file|files|implementation|"
    r"implementations|logic|body|bodies|lines?|content|contents|text|module|script|program|block|"
    r"blocks|imports?|fields?|properties|definitions?|declarations?|statements?|tests?|cases?|"
    r"items?|entries|elements?|rows?|rules?|routes?|handlers?|helpers?|variables?|constants?|"
    r"types?|"
    r"attributes?|members?|options?|settings|config|configuration|sections?|steps?|markup|html|css|"
    r"styles?|query|columns?|parameters?|arguments?|paragraphs?|part|parts|stuff|things|everything|"
    r"struct|interface|component|components|template|loop|document|page|list|object)"
)
_CODE = (
    r"(?:code|codes|functions?|methods?|class|classes|files?|implementations?|logic|body|content|"
    r"contents|module|script|program|imports?|definitions?|tests?|config|configuration|sections?|"
    r"markup|html|css|styles?|query|component|template|document|page|class definition)"
)
"""What the words alone say that it was left out, without dots and without that it stays."""
_ADJECTIVES = (
    r"(?:the|your|our|my|this|that|all|any|other|of|existing|original|remaining|previous|unchanged|"
    r"same|current|above|below|earlier|old|and|\w+)"
)
_STAYS = (
    r"(?:(?:is|are|stays?|remains?|left|kept|goes|go|continues?|would be|should be|can be|will be|"
    r"has|have)\s+)*(?:(?:completely|exactly|entirely|mostly|all)\s+)?(?:unchanged|un-?modified|"
    r"un-?touched|the same|same|identical|as (?:is|it was|before|above|in the original|they were|"
    r"they are)|as-is|not changed|not been changed|intact|here|goes here|omitted|elided|skipped|"
    r"removed for brevity|omitted for brevity|for brevity|below|above|follows|continues|hidden)"
    r"(?:\s+(?:as before|as above|for brevity|here|from here|below|above))*"
)
_PHRASES = re.compile(
    "|".join(
        f"(?:{one})"
        for one in (
            rf"(?:(?:and|with|keep|insert|include|plus)\s+)?(?:the\s+)?(?:rest|"
            rf"remainder)\s+of(?:\s+{_ADJECTIVES}){{0,4}}"
            rf"\s+(?:{_CODE}(?:\s+{_STAYS})?|{_WHAT}\s+{_STAYS})",
            rf"(?:and\s+)?(?:the\s+)?(?:rest|remainder)\s+{_STAYS}",
            rf"(?:(?:keep|leave|include|insert|your|all|the|and|some|more|any)\s+)*(?:existing|"
            rf"remaining|previous|"
            rf"unchanged|unmodified|omitted)\s+(?:\w+\s+)?{_CODE}(?:\s+{_STAYS})?",
            rf"(?:(?:the|all|your|any)\s+)*(?:existing|remaining|previous|original|other|"
            rf"same)\s+(?:\w+\s+){{0,2}}"
            rf"{_WHAT}\s+{_STAYS}",
            rf"(?:everything|all(?=\s+(?:else|other|the other))|"
            rf"nothing)(?:\s+else)?(?:\s+\w+){{0,2}}\s+{_STAYS}",
            rf"(?:\w+\s+){{0,3}}{_WHAT}\s+(?:(?:is|are|stays?|remains?|left|kept)\s+)+(?:unchanged|"
            rf"un-?modified|the same|as is|as-is|as before|omitted(?: for brevity)?|untouched)",
            rf"(?:\w+\s+){{0,2}}{_WHAT}\s+(?:unchanged|omitted|omitted for brevity|elided|"
            rf"truncated|snipped|as before)",
            r"(?:the\s+)?same as (?:before|above|original|the original|in the original|"
            r"previous\w*)(?: \w+)?",
            r"no (?:other |further )?changes?(?: (?:here|below|above|needed|required|from here|"
            r"in this \w+))*",
            r"unchanged|un-?modified|omitted(?: for brevity)?|snip(?:ped)?|elided|truncated|"
            r"as before|as above|"
            r"code continues?(?: (?:here|below|as before|unchanged))*|continues? (?:here|below|"
            r"as before|unchanged)|and so on|"
            r"skipp?(?:ed|ing)(?: lines?)?",
            r"(?:keep|leave) (?:the |this |everything )?(?:rest|same|existing \w+|original \w+|"
            r"as is|unchanged)"
            r"(?: (?:as is|unchanged|the same|of the \w+))*",
            r"(?:\d+ )?(?:more )?lines? (?:omitted|unchanged|skipped|hidden|of (?:unchanged|"
            r"existing) code)",
            # As models write that answer people in their language.
            r"(?:der |die |das )?(?:rest(?:licher?)?|übrige[rn]?|restlicher?|bestehender?|"
            r"vorhandener?)(?: \w+){0,3}"
            r"(?: (?:bleibt|bleiben))? (?:unverändert|gleich|wie (?:bisher|zuvor|oben))|"
            r"unverändert|"
            r"(?:bestehender|restlicher|übriger|vorhandener) code",
            r"(?:le )?reste (?:du|de la|des|de) \w+(?: (?:est|reste))?(?: (?:inchangée?s?|"
            r"identique))?|inchangée?s?|"
            r"code existant",
            r"(?:el )?resto del? (?:la )?\w+(?: (?:permanece|queda|sigue|es))?(?: (?:igual|"
            r"sin cambios|sin modificar))?|"
            r"sin cambios|c[óo]digo existente",
            r"(?:o )?resto d[oae] \w+(?: (?:permanece|continua|fica))?(?: (?:igual|"
            r"inalterad[oa]|sem alterações))?|"
            r"(?:il )?resto del(?:la)? ?\w+(?: (?:rimane|resta))?(?: (?:invariat[oa]|uguale))?",
            r"(?:остальн\w+|существующ\w+|прежн\w+) код\w*(?: (?:остаётся|"
            r"остается))?(?: (?:без изменений|прежним))?|"
            r"без изменений",
            r"(?:其余|其他|剩余|剩下|原有|现有|保留)\S{0,12}(?:不变|相同|省略|代码|保持)\S{0,6}|(?:保持)?不变|省略\S{0,8}|同上",
            r"(?:残り|既存|以降|以下|他)\S{0,14}(?:変更なし|同じ|そのまま|省略|コード)\S{0,6}|変更なし|省略",
            r"(?:나머지|기존)\s?\S{0,6}\s?(?:코드)?\S{0,2}\s?(?:동일|그대로|변경 없음|생략)?",
        )
    ),
    re.IGNORECASE,
)
_KEYWORDS = re.compile(
    rf"\b(?:rest|remain\w*|existing|unchanged|previous|omitted|other|same|before|above|original|"
    rf"more|continu\w+|elided|snip\w*|truncat\w*|skip\w*|brevity|etc|your|{_WHAT})\b",
    re.IGNORECASE,
)
_OF_CODE = re.compile(
    r"\b(?:rest|remain\w*|existing|unchanged|omitted|same|elided|brevity|before)\b", re.IGNORECASE
)
"""Words of place holders that stand behind code."""
_SESSION = re.compile(r"\s*(?:>>>|In \[\d+\]:|\.{3}(?:\s|$))")
_STUBS = re.compile(
    r"stub|abstract|protocol|ellipsis|interface|overload|\.\.\.|…|placeholder|place holder|"
    r"signature|"
    r"declar|skeleton|remove the bod|empty|pyi|not implemented|todo",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"\b(?:add|adds|insert|append|prepend|new|create|write|implement|introduce|extend|another|"
    r"include|also|more)\b",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"\s*\(?(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|virtual|"
    r"override|inline|unsafe|extern)\s+)*"
    r"(?:def|class|function\*?|func|fn|sub|interface|struct|enum|trait|module|method|proc|defun|"
    r"impl)\b\s*(?:\([^)]*\)\s*)?(?P<name>[\w$]+)"
)
_METHOD = re.compile(
    r"\s*(?:[\w<>\[\],.*&]+\s+)*(?!(?:if|for|while|switch|catch|with|return|elif|"
    r"else)\b)(?P<name>[\w$]+)"
    r"\s*\([^()]*\)[^(){};=]*\{\s*$"
)
"""As Java, C and JavaScript write them."""
_VALUE = re.compile(r"\s*(?P<key>[^=:(){}+*/|-]{1,60}?)\s*(?::?=(?![=>~])|:(?=\s))")
_DOTTED_BODY = re.compile(
    rf"(?P<head>\s*(?:async\s+)?(?:def|class)\b.*:)\s*{_ELLIPSIS}\s*(?:#.*)?$"
)
_NOTE = re.compile(r"(?:#|//|/\*|--|;;|%|<!--|\{#|\(\*)")
"""Where a comment behind code may begin."""
_ELIDED_BODY = re.compile(
    rf"\{{\s*(?:(?://|/\*|#|--|\(\*)\s*)?{_ELLIPSIS}(?![\w.])[^{{}},]*\}}\s*[;,)]*$"
    rf"|[\[(]\s*/\*\s*{_ELLIPSIS}[^*]*\*/\s*[\])]\s*[;,)]*$"
)


def place_holder(line: str) -> bool:
    """Whether a line stands for text that was left out and is nothing else."""
    return _is_marked_holder(line) or _is_bare_holder(line)


def _said(line: str) -> str:
    text = _WORD_MARK.sub("", line)
    return _STRIPPED.sub("", text)


def _is_marked_holder(line: str) -> bool:
    if _ONLY_DOTS.match(line):
        return _IS_MARKED.match(line) is not None
    text = _said(line)
    if not text or not (_IS_MARKED.match(line) or _is_bracketed(line)):
        return False
    return _says_left_out(text)


def _says_left_out(text: str) -> bool:
    dotted_start = re.match(_ELLIPSIS, text) is not None
    dotted_end = re.search(rf"{_ELLIPSIS}[\s{_MARKS}]*$", text) is not None
    words = re.sub(_ELLIPSIS, " ", text)
    words = re.sub(r"[()\[\]{}<>*_\"'`,;:!.]|(?<=\s)[-–—]+(?=\s)|^[-–—]+|[-–—]+$", " ", words)
    words = " ".join(words.split())
    if dotted_start and dotted_end:
        return True
    if not words:
        return dotted_start
    if _PHRASES.fullmatch(words):
        return True
    if dotted_start or dotted_end:
        parts = re.split(rf"\s*(?:{_ELLIPSIS}|[(),;–—])\s*", text)
        if any(
            _PHRASES.fullmatch(" ".join(part.strip(" .:").split()))
            for part in parts
            if part.strip()
        ):
            return True
        return dotted_start and len(words.split()) <= 5 and _KEYWORDS.search(words) is not None
    parts = [part.strip(" .:()") for part in re.split(r"[(),;–—]", text)]
    parts = [part for part in parts if part]
    return len(parts) > 1 and all(_PHRASES.fullmatch(" ".join(part.split())) for part in parts)


def _is_bracketed(line: str) -> bool:
    stripped = line.strip()
    return stripped[:1] + stripped[-1:] in ("[]", "()", "<>", "{}", "**", "__") or bool(
        re.match(rf"{_ELLIPSIS}\s", stripped)
    )


def _is_bare_holder(line: str) -> bool:
    """Dots alone; where a statement may consist of them the lines around decide."""
    return _BARE_DOTS.match(line) is not None


@dataclass(frozen=True, slots=True)
class _Gap:
    start: int
    end: int


def filled_in(answer: str, original: str, language: str, instruction: str = "") -> str:
    """The answer with what it left out; the answer itself where nothing was left out. Both have
    lines that end in newlines. Raises EditRefused where what was left out is not clear."""
    old = original.split("\n")
    lines = _without_notes(_with_bodies_below(answer.split("\n"), old, instruction), old)
    holders = _holders(lines, old, language, instruction)
    if not holders:
        return answer if lines == answer.split("\n") else "\n".join(lines)
    shown = lines[holders[0]].strip()[:SHOWN_CHARACTERS]
    lines, holders = _as_one(_levelled(lines, old), holders)
    gaps = _gaps(lines, old, holders, adds=_ADDS.search(instruction) is not None)
    if gaps is None:
        raise EditRefused(REFUSED.format(shown=shown))
    made: list[str] = []
    place = 0
    for holder, gap in zip(holders, gaps, strict=True):
        _join(made, lines[place:holder])
        _join(made, old[gap.start : gap.end])
        place = holder + 1
    _join(made, lines[place:])
    return "\n".join(made)


def _join(made: list[str], more: Sequence[str]) -> None:
    """Put lines behind others; empty lines on both sides of the border are those of one side."""
    above, below = _blank(reversed(made)), _blank(more)
    made += more[min(above, below) :] if made else more


def _blank(lines: Iterable[str]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda line: not line.strip(), lines))


def _as_one(lines: list[str], holders: list[int]) -> tuple[list[str], list[int]]:
    """The lines with one place holder where several stand in a row: they stand for one gap."""
    gone: set[int] = set()
    for one, other in itertools.pairwise(holders):
        if not any(line.strip() for line in lines[one + 1 : other]):
            gone |= {*range(one + 1, other + 1)}
    numbers = [number for number in range(len(lines)) if number not in gone]
    joined = [n for n, number in enumerate(numbers) if number in set(holders)]
    return [lines[number] for number in numbers], joined


def _levelled(lines: list[str], old: list[str]) -> list[str]:
    """The lines as deep as those of the original, where the answer begins at the left."""
    indents = {line.strip(): _indentation(line) for line in reversed(old) if line.strip()}
    for line in lines:
        known = indents.get(line.strip())
        if known is not None and line.strip():
            own = _indentation(line)
            if len(known) > len(own) and known.endswith(own):
                added = known[: len(known) - len(own)]
                if all(_indentation(one) or not one.strip() or known == added for one in old):
                    return [added + one if one.strip() else one for one in lines]
            return lines
    return lines


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _holders(lines: list[str], old: list[str], language: str, instruction: str) -> list[int]:
    """The numbers of lines that are place holders. Raises EditRefused where a part of a line was
    left out."""
    known = Counter(line.strip() for line in old)
    words_of_instruction = " ".join(instruction.split()).lower()
    found: list[int] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if not text:
            continue
        if known[text] > 0:
            known[text] -= 1
            continue
        if _is_of_session(lines, number):
            continue
        said = _said(line).lower()
        if len(said) > len("...") and said in words_of_instruction:
            # The instruction asks for these words.
            continue
        is_bare = _is_bare_holder(line) and not _is_code(lines, number, old, language, instruction)
        if is_bare or _is_marked_holder(line):
            found.append(number)
        elif _left_out_within(text):
            raise EditRefused(REFUSED.format(shown=text[:SHOWN_CHARACTERS]))
    return found


def _is_of_session(lines: list[str], number: int) -> bool:
    """Whether a line with dots goes on from the one above in a session with Python."""
    if not lines[number].lstrip().startswith("..."):
        return False
    above = itertools.takewhile(_SESSION.match, reversed(lines[:number]))
    return any(not line.lstrip().startswith("...") for line in above)


def _left_out_within(text: str) -> bool:
    """Whether a body is left out in the line that begins it."""
    if _ELIDED_BODY.search(text):
        return True
    found = _NOTE.search(text)
    if found is None or not found.start():
        return False
    note = text[found.start() :]
    is_dotted = re.search(_ELLIPSIS, note) is not None and _OF_CODE.search(note) is not None
    return is_dotted and _is_marked_holder(note)


def _is_code(
    lines: list[str], number: int, old: list[str], language: str, instruction: str
) -> bool:
    """Whether dots on a line of their own are code: a body of Python, or one of several values."""
    if lines[number].strip() not in ("...", "…"):
        return False
    before = next((line.rstrip() for line in reversed(lines[:number]) if line.strip()), "")
    if before.endswith((",", "(", "[", "{")):
        return True
    if not language.startswith("python") or not before.endswith((":", '"""', "'''")):
        return False
    return _STUBS.search(instruction) is not None or _is_new(before, old)


def _is_new(line: str, old: list[str]) -> bool:
    name = _defined(line)
    return bool(name) and all(_defined(one) != name for one in old)


def _with_bodies_below(lines: list[str], old: list[str], instruction: str) -> list[str]:
    """The lines with dots in place of a Python body on a line of their own, where the original has
    more there."""
    if _STUBS.search(instruction):
        return lines
    known = {line.strip() for line in old}
    made: list[str] = []
    for line in lines:
        found = _DOTTED_BODY.match(line)
        if found is None or line.strip() in known or _is_new(line, old):
            made.append(line)
        else:
            made += [found["head"], _indentation(line) + "    ..."]
    return made


def _defined(line: str) -> str:
    found = _DEFINITION.match(line) or _METHOD.match(line)
    return found["name"] if found else ""


def _key(line: str) -> str:
    found = _VALUE.match(line)
    return _defined(line) or (f"{_depth(line)} {found['key']}" if found else "")


def _without_notes(lines: list[str], old: list[str]) -> list[str]:
    """The lines without comments that say of an original line that it was not changed."""
    known = {line.strip() for line in old if line.strip()}
    made = []
    for line in lines:
        found = _NOTE.search(line) if line.strip() not in known else None
        code = line[: found.start()].rstrip() if found else ""
        if found and code and _is_marked_holder(line[found.start() :].strip()):
            made.append(code if code.strip() in known else line)
        else:
            made.append(line)
    return made


def _gaps(lines: list[str], old: list[str], holders: list[int], adds: bool) -> list[_Gap] | None:
    """What each place holder stands for; None where that is not clear."""
    rows = [n for n, line in enumerate(old) if line.strip()]
    filled = [n for n, line in enumerate(lines) if line.strip()]
    if len(rows) * len(filled) > MOST_CELLS:
        return None
    gaps = set(holders)
    tokens = [None if n in gaps else lines[n] for n in filled]
    texts = [old[n] for n in rows]
    added = _new_definitions(tokens, texts)
    if added and not adds:
        # Another name in place of one that is left out, or a further definition.
        return None
    anchors = [_anchor(number, tokens, texts, added) for number in range(len(tokens))]
    forward = _costs(tokens, texts, added)
    backward = _costs(tokens[::-1], texts[::-1], {len(tokens) - 1 - n for n in added})
    count, size = len(tokens), len(rows)
    best = forward[count][size]
    found: list[_Gap] = []
    for number, token in enumerate(tokens):
        if token is not None:
            continue
        before = forward[number]
        behind = [backward[count - 1 - number][size - place] for place in range(size + 1)]
        starts = _as_deep(lines[filled[number]], texts)
        start = _one_of(before, _least_after(behind), best, starts)
        end = _one_of(behind, _least_before(before), best, set())
        if start is None or end is None or end < start:
            return None
        above, below = anchors[:number], anchors[number + 1 :]
        if not (_holds_before(above, before[start]) and _holds_behind(below, behind[end])):
            return None
        first = rows[start - 1] + 1 if start else 0
        last = rows[end] if end < size else len(old)
        found.append(_Gap(last, last) if start == end else _Gap(first, last))
    return found


class _Anchor(Enum):
    """How a line of an answer tells where it stands in the original."""

    GAP = "gap"
    SURE = "sure"
    """It is one line of the original, or new as a whole."""
    SOMEWHERE = "somewhere"
    """It is one of several lines of the original."""
    NEW = "new"
    """No line of the original is like it."""
    CHANGED = "changed"
    """It may be a line of the original, changed, or a further one."""


def _anchor(number: int, tokens: list[str | None], old: list[str], added: set[int]) -> _Anchor:
    token = tokens[number]
    if token is None:
        return _Anchor.GAP
    if number in added:
        return _Anchor.SURE
    same = sum(line.rstrip() == token.rstrip() for line in old)
    again = sum(one is not None and one.rstrip() == token.rstrip() for one in tokens)
    if same:
        return _Anchor.SURE if same == again == 1 else _Anchor.SOMEWHERE
    own = _Line.of(token)
    if own.key and [_key(line) for line in [*old, *filter(None, tokens)]].count(own.key) == 2:
        return _Anchor.SURE
    alike = any(own.cost_for(_Line.of(line)) < 1.0 for line in old)
    return _Anchor.CHANGED if alike else _Anchor.NEW


def _holds_before(anchors: list[_Anchor], cost: float) -> bool:
    """Whether the lines above a place holder tell where its gap begins: changed lines do below a
    line that stands in one place, lines of several places where all above is as it was.

    cost: how many lines above are changed."""
    is_changed = False
    for anchor in reversed(anchors):
        if anchor == _Anchor.SURE:
            return True
        if anchor == _Anchor.GAP or (anchor == _Anchor.SOMEWHERE and is_changed):
            return False
        is_changed = is_changed or anchor == _Anchor.CHANGED
    return not anchors or cost == 0.0 or all(one == _Anchor.NEW for one in anchors)


def _holds_behind(anchors: list[_Anchor], cost: float) -> bool:
    for anchor in anchors:
        if anchor == _Anchor.SURE:
            return True
        if anchor in (_Anchor.GAP, _Anchor.CHANGED):
            return False
    return not anchors or cost == 0.0 or all(one == _Anchor.NEW for one in anchors)


def _one_of(costs: list[float], others: list[float], best: float, fits: set[int]) -> int | None:
    """The one place that a border can have; None where there are several."""
    able = [n for n, cost in enumerate(costs) if cost + others[n] < best + MARGIN]
    if len(able) > 1:
        able = [n for n in able if n in fits]
    return able[0] if len(able) == 1 else None


def _as_deep(line: str, texts: list[str]) -> set[int]:
    """The places of texts that are indented as a line is, and the one behind them all."""
    return {len(texts), *(n for n, text in enumerate(texts) if _depth(text) == _depth(line))}


def _depth(line: str) -> int:
    return len(_indentation(line).expandtabs(4))


def _least_after(costs: list[float]) -> list[float]:
    return _least_before(costs[::-1])[::-1]


def _least_before(costs: list[float]) -> list[float]:
    return list(itertools.accumulate(costs, min))


def _new_definitions(tokens: list[str | None], old: list[str]) -> set[int]:
    """The lines of definitions that the original has not, with what they define."""
    found: set[int] = set()
    depth = -1
    for number, token in enumerate(tokens):
        if token is None or _depth(token) <= depth:
            closes = token is not None and _depth(token) == depth and not re.search(r"\w", token)
            depth = depth if closes else -1
        if token is not None and depth < 0 and _is_new(token, old):
            depth = _depth(token)
        if depth >= 0:
            found.add(number)
    return found


def _costs(tokens: list[str | None], old: list[str], added: set[int]) -> list[list[float]]:
    """Of every start of an answer and every start of the original, how many changed lines lie
    between them: an edit distance in which a place holder takes lines for nothing. Lines that were
    ``added`` are none of the original, changed."""
    known = [_Line.of(line) for line in old]
    left = Counter(line.rstrip() for line in old)
    left.subtract(one.rstrip() for one in tokens if one is not None)
    unchanged = {text for text, count in left.items() if count <= 0}
    """Lines of the original that the answer has as often."""
    rows: list[list[float]] = [[float(n) for n in range(len(old) + 1)]]
    for number, token in enumerate(tokens):
        above = rows[-1]
        if token is None:
            rows.append(_least_before(above))
            continue
        own = _Line.of(token)
        row = [above[0] + 1.0]
        for n, line in enumerate(known):
            if number in added:
                cost = NEVER
            elif line.text in unchanged:
                cost = own.cost_as(line)
            else:
                cost = own.cost_for(line)
            same = above[n] + cost
            row.append(min(same, above[n + 1] + 1.0, row[n] + 1.0))
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as it is compared: its words, with its depth among them, and what it defines."""

    text: str
    words: Counter[str]
    size: int
    name: str
    key: str
    begins: str
    """Its depth and first word."""

    @classmethod
    def of(cls, line: str) -> _Line:
        words = Counter([f"{_depth(line)} deep", *re.findall(r"\w+|[^\w\s]", line)])
        first = re.match(r"\s*\w+", line)
        begins = first.group().expandtabs(4) if first else ""
        return cls(line.rstrip(), words, words.total(), _defined(line), _key(line), begins)

    def cost_as(self, other: _Line) -> float:
        """Nothing where it is the other line; else that goes and this comes."""
        return 0.0 if self.text == other.text else 2.0

    def cost_for(self, other: _Line) -> float:
        """How much of a change it is to have this line in place of another."""
        if self.name and other.name:
            return SAME_NAME if self.name == other.name else 2.0
        if self.key and self.key == other.key:
            return SAME_NAME
        alike = 2.0 * (self.words & other.words).total() / (self.size + other.size)
        if self.begins and self.begins == other.begins:
            alike = max(alike, ALIKE_BY_BEGINNING)
        return 1.0 - alike if alike > ALIKE else 2.0
