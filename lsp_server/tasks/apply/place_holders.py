"""Tells place holders of snippets and answers, such as ``# ... rest of the code unchanged``, from
comments that say something."""

from __future__ import annotations

import re

ELLIPSIS = r"(?:\.{3,}|…|\. \. \.)"
_MARKS = r"#%;'\"!/*\-<>{}()\[\]|\\=~:@^+&$⍝`"
_STRIPPED = re.compile(rf"^[\s{_MARKS}]+|[\s{_MARKS}]+$")
_WORD_MARK = re.compile(r"^\s*(?:rem|dnl|c|--\[\[|comment)\s+(?=\W*\w)", re.IGNORECASE)
_IS_MARKED = re.compile(
    r"^\s*(?:#|//|/\*|\*|--|;|%|'|\"|!|<!--|\{#|\{/\*|\(\*|\{-|<%|@\*|::|rem\b|dnl\b|⍝|\||\\)",
    re.IGNORECASE,
)
_ONLY_DOTS = re.compile(rf"^[\s{_MARKS}]*{ELLIPSIS}[\s{_MARKS}]*$")
_BARE_DOTS = re.compile(rf"^\s*[\[({{<]?\s*{ELLIPSIS}\s*[\])}}>]?\s*$")

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
            r"(?:keep |leave )?(?:the )?\w+(?: \w+)?(?: is| are| remains?| stays?| left| kept)* "
            r"(?:unchanged|untouched|un-?modified|as is|as before|as-is)",
            r"(?:the )?\w+(?: \w+){0,5} (?:remains?|stays?) "
            r"(?:unchanged|untouched|un-?modified|as is)",
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
OF_CODE = re.compile(
    r"\b(?:rest|remain\w*|existing|unchanged|omitted|same|elided|brevity|before)\b", re.IGNORECASE
)
"""Words of place holders that stand behind code."""


def place_holder(line: str) -> bool:
    """Whether a line stands for text that was left out and is nothing else."""
    return is_marked(line) or is_bare(line)


def said(line: str) -> str:
    text = _WORD_MARK.sub("", line)
    return _STRIPPED.sub("", text)


def is_marked(line: str) -> bool:
    if _ONLY_DOTS.match(line):
        return _IS_MARKED.match(line) is not None
    text = said(line)
    if not text or not (_IS_MARKED.match(line) or _is_bracketed(line)):
        return False
    return _says_left_out(text)


def _says_left_out(text: str) -> bool:
    dotted_start = re.match(ELLIPSIS, text) is not None
    dotted_end = re.search(rf"{ELLIPSIS}[\s{_MARKS}]*$", text) is not None
    words = re.sub(ELLIPSIS, " ", text)
    words = re.sub(r"[()\[\]{}<>*_\"'`,;:!.]|(?<=\s)[-–—]+(?=\s)|^[-–—]+|[-–—]+$", " ", words)
    words = " ".join(words.split())
    if dotted_start and dotted_end:
        return True
    if not words:
        return dotted_start
    if _PHRASES.fullmatch(words):
        return True
    if dotted_start or dotted_end:
        parts = re.split(rf"\s*(?:{ELLIPSIS}|[(),;–—])\s*", text)
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
        re.match(rf"{ELLIPSIS}\s", stripped)
    )


def is_bare(line: str) -> bool:
    """Dots alone; where a statement may consist of them the lines around decide."""
    return _BARE_DOTS.match(line) is not None
