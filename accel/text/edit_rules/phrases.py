"""Wordings of the instructions. `{a|b}` stands for a choice, `<name>` for a slot."""

from __future__ import annotations

import random
import re

from accel.text.edit_rules.wordings import TRAINED

PHRASES: dict[str, tuple[str, ...]] = {
    "rename_parameter": (
        "{rename|Rename} {the parameter|parameter|the argument|argument|param} <old> "
        "{to|into} <new>",
        "{change the name of|Change the name of} {parameter|the parameter|argument} <old> to <new>",
        "{call|name} the {parameter|argument} <old> <new> instead",
        "{rename|Rename} <old> {to|->|=>} <new>",
    ),
    "rename_variable": (
        "{rename|Rename} {the variable|variable|the local variable|local|var} <old> "
        "{to|into} <new>",
        "{change the name of|Change the name of} {variable|the variable} <old> to <new>",
        "{call|name} the {variable|local variable} <old> <new> instead",
        "{rename|Rename} <old> {to|->|=>} <new>",
    ),
    "rename_function": (
        "{rename|Rename} {the function|function|this function|the method} <old> {to|into} <new>",
        "{rename|Rename} {the function|this function|the method|it} to <new>",
        "{change the name of the function|Change the function's name} to <new>",
        "{rename|Rename} <old> {to|->|=>} <new>",
    ),
    "add_docstring": (
        '{add|Add|insert|write} {the|a} docstring {|saying |that says }"<text>"',
        '{set the docstring to|Set the docstring to} "<text>"',
        '{document the function with|docstring:|Docstring:} "<text>"',
    ),
    "remove_docstring": (
        "{remove|Remove|delete|Delete|drop|strip} {the docstring|docstring|docstrings|its "
        "docstring}",
        "{take out|get rid of} the docstring",
    ),
    "write_docstring": (
        "{add|Add|write|Write} {a docstring|docstring|documentation}{| to this function}",
        "{document|Document} {this|the} {function|code|method}",
    ),
    "add_type_hint": (
        "{add|Add} {type hint|the type hint|a type hint|the type|type annotation} <type> to "
        "{parameter |the parameter |argument |}<name>",
        "{annotate|Annotate} {parameter |the argument |}<name> {as|with} <type>",
        "{make|declare} {parameter |}<name> {a|of type} <type>",
    ),
    "add_return_type": (
        "{add|Add} {return type|the return type|return annotation|return type hint} <type>",
        "{annotate|Annotate} the return {value |type |}{as|with} <type>",
        "{make|declare} the function return <type>",
    ),
    "remove_type_hints": (
        "{remove|Remove|delete|drop|strip} {type hints|the type hints|type annotations|"
        "the type annotations|annotations|all type hints}{| from the signature}",
    ),
    "change_quotes": (
        "{use|Use|switch to|change to} <style> quotes{| for strings}",
        "{change|convert|Convert} {strings|string literals|all strings|quotes} to <style> quotes",
        "<style> quotes {please|for all strings}",
    ),
    "to_fstring": (
        "{use|Use} {f-strings|an f-string|f-strings instead of format}",
        "{convert|Convert|change} {to f-strings|the formatting to f-strings|to an f-string}",
        "{replace|Replace} {format calls|string formatting|old formatting} {with|by} f-strings",
    ),
    "add_guard": (
        "{add a guard clause:|guard:|Add a guard:} <action> if <condition>",
        "<action> {early if|at the start if|right away when} <condition>",
        "{add|insert} {an early exit|a check|a guard clause} at the start: if <condition>, "
        "<action>",
        "{if|when} <condition>, <action>{| at the start| first}",
    ),
    "add_print": (
        "{print|Print} <name> {at the start|first|at the beginning|at the top}{| of the function}",
        "{add|insert|Add} {a print of|a print statement for|print for} <name> at the "
        "{start|beginning|top}",
        "{debug|trace} <name> with {a print|print} at the start",
    ),
    "remove_prints": (
        "{remove|Remove|delete|drop|strip} {print statements|the print "
        "statements|prints|all prints|"
        "the print calls|debug prints|the print}",
    ),
    "add_logging": (
        "{log|Log} <name> {at the start|first|at the beginning} {with|at level} <level>",
        "{add|insert|Add} {a <level> log|<level> logging|a <level> log line} of <name> at the "
        "{start|top|beginning}",
    ),
    "add_parameter": (
        "{add|Add|append} {parameter|a parameter|the parameter|an argument|argument} <new>=<value>"
        "{| at the end| as the last one}",
        "{add|Add|append} {parameter|a parameter|an argument} <new> with default <value>{| "
        "at the end}",
        "{give the function|take} {another|a further|a new} parameter <new>=<value>",
    ),
    "change_default": (
        "{change|Change|set} the default {of|for} {|parameter |argument }<name> to <value>",
        "{make|let} {the default of <name>|<name> default to} <value>",
        "{default <name> to|set default <name> =|use as default for <name>} <value>",
    ),
    "remove_comments": (
        "{remove|Remove|delete|Delete|drop|strip} {comments|the comments|all comments|every "
        "comment}",
        "{take out|get rid of} {the|all} comments",
    ),
    "wrap_try": (
        "{wrap|Wrap|put} {the body|the function body|everything|the code} in {try/except|a "
        "try/except|"
        "try except} <error> {and|then} <action>",
        "{catch|handle|Catch} <error> {in|around|for} {the body|the whole body|everything} "
        "and <action>",
        "{add|Add} {error handling:|a try/except around the body:} on <error> <action>",
    ),
    "invert_if": (
        "{invert|Invert|negate|flip} {the if|the condition|the branches of|if} <condition>",
        "{swap|Swap} the branches of {if|the if} <condition>",
    ),
    "make_async": (
        "{make|Make} {the function|this function|it|the method} {async|asynchronous|a coroutine}",
        "{convert|Convert|turn} {the function|this|it} {to|into} {async|a coroutine|an "
        "async function}",
    ),
    "add_decorator": (
        "{add|Add|put} {the decorator|decorator|a decorator} <decorator>{| on top| to the "
        "function}",
        "{decorate|Decorate} {it|the function|this function} with <decorator>",
    ),
    "remove_decorators": (
        "{remove|Remove|delete|drop|strip} {decorators|the decorators|all decorators|the decorator|"
        "its decorator}",
    ),
}

_CHOICE = re.compile(r"\{([^{}]*)\}")


def instruction(kind: str, slots: dict[str, str], rng: random.Random) -> str:
    """One wording of an edit; slots stand plain, in backticks or in quotes."""
    wording = rng.choice(PHRASES[kind])
    wording = _CHOICE.sub(lambda choice: rng.choice(choice[1].split("|")), wording)
    mark = rng.choice(("", "", "", "`", "'"))
    for name, value in slots.items():
        plain = name in {"style", "text", "action", "level"}
        quoted = value if plain else f"{mark}{value}{mark}"
        wording = wording.replace(f"<{name}>", quoted)
    return wording + rng.choice(("", "", "", "."))


def said(kind: str, slots: dict[str, str]) -> str:
    """The wording in which prompts say an edit that is recognised."""
    return "".join(said_parts(kind, slots))


def said_parts(kind: str, slots: dict[str, str]) -> tuple[str, ...]:
    """The same, cut before and after what fills a slot: tokens of a part are those of the code."""
    pieces = re.split(r"<(\w+)>", TRAINED[kind])
    return tuple(filter(None, (slots[piece] if n % 2 else piece for n, piece in enumerate(pieces))))
