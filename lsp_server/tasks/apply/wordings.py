"""How snippets and answers say that something is left out, as data: one table, with a case each.

A wording is a row of words. ``a|b`` is one of them, ``{code}`` a word of that list, ``<4>`` up to
four of any, ``<1-2>`` one or two; ``?``, ``*`` and ``+`` at the end say how often it stands there.
``_`` is a blank within an alternative; ``~`` is any word, ``un~`` one that begins so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LISTS = {
    "code": "code|codes|function|functions|method|methods|class|classes|file|files|implementation|"
    "implementations|logic|body|content|contents|module|script|program|import|imports|definition|"
    "definitions|test|tests|config|configuration|section|sections|markup|html|css|style|styles|"
    "query|component|template|document|page|class_definition",
    # Of these it has to be said that they stay.
    "what": "code|codes|function|functions|method|methods|class|classes|file|files|implementation|"
    "implementations|logic|body|bodies|line|lines|content|contents|text|module|script|program|"
    "block|blocks|import|imports|field|fields|properties|definition|definitions|declaration|"
    "declarations|statement|statements|test|tests|case|cases|item|items|entries|element|elements|"
    "row|rows|rule|rules|route|routes|handler|handlers|helper|helpers|variable|variables|constant|"
    "constants|type|types|attribute|attributes|member|members|option|options|settings|config|"
    "configuration|section|sections|step|steps|markup|html|css|style|styles|query|column|columns|"
    "parameter|parameters|argument|arguments|paragraph|paragraphs|part|parts|stuff|things|"
    "everything|struct|interface|component|components|template|loop|document|page|list|object",
    "be": "is|are|stay|stays|remain|remains|left|kept|goes|go|continues|continue|would_be|"
    "should_be|can_be|will_be|has|have",
    "wholly": "completely|exactly|entirely|mostly|all",
    "unchanged": "unchanged|unmodified|un-modified|untouched|un-touched|the_same|same|identical|"
    "as_is|as_it_was|as_before|as_above|as_in_the_original|as_they_were|as_they_are|as-is|"
    "not_changed|not_been_changed|intact|here|goes_here|omitted|elided|skipped|"
    "removed_for_brevity|omitted_for_brevity|for_brevity|below|above|follows|continues|hidden",
    "again": "as_before|as_above|for_brevity|here|from_here|below|above",
    "still": "unchanged|untouched|un-touched|unmodified|un-modified|as_is|as-is",
    "zh_rest": "其余|其他|剩余|剩下|原有|现有|保留",
    "zh_same": "不变|相同|省略|代码|保持",
    "ja_rest": "残り|既存|以降|以下|他",
    "ja_same": "変更なし|同じ|そのまま|省略|コード",
}
STAYS = "{be}* {wholly}? {unchanged} {again}*"
"""That something stays as it is; ``{stays}`` in wordings."""


class Wording(NamedTuple):
    """A row of the table, and a text that it is of."""

    words: str
    case: str


WORDINGS = (
    Wording("and|with|keep|insert|include|plus? the? rest|remainder of <4> {code}", "rest of code"),
    Wording(
        "and|with|keep|insert|include|plus? the? rest|remainder of <4> {code} {stays}",
        "the rest of the function remains the same",
    ),
    Wording(
        "and|with|keep|insert|include|plus? the? rest|remainder of <4> {what} {stays}",
        "rest of the fields unchanged",
    ),
    Wording("and? the? rest|remainder {stays}", "rest unchanged"),
    Wording(
        "keep|leave|include|insert|your|all|the|and|some|more|any* "
        "existing|remaining|previous|unchanged|unmodified|omitted <1> {code}",
        "your existing code",
    ),
    Wording(
        "keep|leave|include|insert|your|all|the|and|some|more|any* "
        "existing|remaining|previous|unchanged|unmodified|omitted <1> {code} {stays}",
        "remaining code here",
    ),
    Wording(
        "the|all|your|any* existing|remaining|previous|original|other|same <2> {what} {stays}",
        "other helper methods remain unchanged",
    ),
    Wording("everything|nothing else? <2> {stays}", "everything else stays the same"),
    Wording("all else <2> {stays}", "all else is as before"),
    Wording("all other <1> {stays}", "all other routes stay unchanged"),
    Wording("all the other {stays}", "all the other stay as is"),
    Wording(
        "<3> {what} is|are|stay|stays|remain|remains|left|kept+ "
        "{still}|the_same|as_before|omitted|omitted_for_brevity",
        "the total method is unchanged",
    ),
    Wording(
        "<2> {what} unchanged|omitted|omitted_for_brevity|elided|truncated|snipped|as_before",
        "helper functions omitted",
    ),
    Wording(
        "the? same as before|above|original|the_original|in_the_original|previous~ <1>",
        "same as original",
    ),
    Wording(
        "no other|further? change|changes here|below|above|needed|required|from_here|in_this_~*",
        "no changes below",
    ),
    Wording(
        "unchanged|unmodified|un-modified|omitted|omitted_for_brevity|snip|snipped|elided|"
        "truncated|as_before|as_above|and_so_on",
        "omitted for brevity",
    ),
    Wording("code continue|continues here|below|as_before|unchanged*", "code continues below"),
    Wording("continue|continues here|below|as_before|unchanged", "continues as before"),
    Wording("skiped|skipped|skiping|skipping line|lines?", "skipped lines"),
    Wording(
        "keep|leave the|this|everything? rest|same|existing_~|original_~|as_is|unchanged "
        "as_is|unchanged|the_same|of_the_~*",
        "keep the rest as is",
    ),
    Wording(
        "<number>? more? line|lines omitted|unchanged|skipped|hidden|of_unchanged_code|"
        "of_existing_code",
        "40 lines omitted",
    ),
    Wording(
        "keep|leave? the? <1-2> is|are|remain|remains|stay|stays|left|kept* {still}|as_before",
        "keep total as is",
    ),
    Wording("the? <1-6> remain|remains|stay|stays {still}", "brackets that count stay untouched"),
    # As models write that answer people in their language.
    Wording(
        "der|die|das? rest|restliche|restlicher|übrige|übriger|übrigen|bestehende|bestehender|"
        "vorhandene|vorhandener <3> bleibt|bleiben? unverändert|gleich|wie_bisher|wie_zuvor|"
        "wie_oben",
        "der Rest der Klasse bleibt gleich",
    ),
    Wording("unverändert", "unverändert"),
    Wording("bestehender|restlicher|übriger|vorhandener code", "restlicher Code"),
    Wording(
        "le? reste du|de|des|de_la ~ est|reste? inchangé~|identique?",
        "le reste du code est inchangé",
    ),
    Wording("inchangé|inchangés|inchangée|inchangées", "inchangé"),
    Wording("code existant", "code existant"),
    Wording(
        "el? resto de|del la? ~ permanece|queda|sigue|es? igual|sin_cambios|sin_modificar?",
        "el resto del código sin cambios",
    ),
    Wording("sin cambios", "sin cambios"),
    Wording("código|codigo existente", "código existente"),
    Wording(
        "o? resto do|da|de ~ permanece|continua|fica? igual|inalterado|inalterada|sem_alterações?",
        "o resto do código permanece igual",
    ),
    Wording(
        "il? resto del|della ~ rimane|resta? invariato|invariata|uguale?",
        "il resto del codice rimane invariato",
    ),
    Wording(
        "остальн~|существующ~|прежн~ код~ остаётся|остается? без_изменений|прежним?",
        "остальной код без изменений",
    ),
    Wording("без изменений", "без изменений"),
    Wording("{zh_rest}~{zh_same}~", "其余代码保持不变"),
    Wording("保持不变|不变|省略~|同上", "省略若干行"),
    Wording("{ja_rest}~{ja_same}~", "残りは変更なし"),
    Wording("変更なし|省略", "変更なし"),
    Wording("나머지~|기존~ 코드~? 동일~|그대로~|변경_없음|생략~?", "나머지 코드 동일"),
)


def pattern_of(words: str) -> str:
    """A regular expression for a row, each of whose words is followed by a blank."""
    patterns = []
    for token in words.replace("{stays}", STAYS).split():
        if count := re.fullmatch(r"<(?:(\d)-)?(\d)>", token):
            patterns.append(rf"(?:\w+ ){{{count[1] or 0},{count[2]}}}")
            continue
        often = token[-1] if token[-1] in "?*+" else ""
        pattern = re.sub(
            r"\{(\w+)\}", lambda name: f"({LISTS[name[1]]})", token.removesuffix(often)
        )
        pattern = pattern.replace("<number>", r"\d+").replace("_", " ")
        pattern = re.sub(r"(?<![^\s|(])~(?=$|[\s|)])", r"\\w+", pattern).replace("~", r"\w*")
        patterns.append(f"(?:(?:{pattern}) ){often}")
    return "".join(patterns)


_ANY = re.compile(
    "|".join(f"(?:{pattern_of(wording.words)})" for wording in WORDINGS), re.IGNORECASE
)
_LEFT_OUT = re.compile(
    r"\b(?:rest|remain\w*|existing|unchanged|previous|omitted|other|same|before|above|original|more|"
    rf"continu\w+|elided|snip\w*|truncat\w*|skip\w*|brevity|etc|your|{LISTS['what']})\b",
    re.IGNORECASE,
)


def says_left_out(words: str) -> bool:
    """Return whether words, parted by blanks, are one of the wordings."""
    return _ANY.fullmatch(f"{words} ") is not None


def may_say_left_out(words: str) -> bool:
    """Return whether one of the words is such as stands in a place holder."""
    return _LEFT_OUT.search(words) is not None
