"""Wordings of instructions: one of the training for each kind of edit, and what people say.

Written as in ``accel.text.edit_rules.phrases``: ``{a|b}`` is a choice, ``<name>`` a slot.
"""

from __future__ import annotations

_REMOVE = "{remove|delete|drop|strip|strip out|erase|eliminate|clear|get rid of|take out|cut}"
_ALL = "{ the| its| all| any| every| this| all the| all of the|}"
_IT = "{it|this|this function|the function|function|this method|the method|this code|the code}"
_NOUN = (
    "{the |}{parameter |argument |param |arg |variable |local variable |local |var |function |"
    "method |name |identifier |}"
)
_ARROW = "{to|into|as|->|=>|→}"
_AT_START = "{| at the start| at the beginning| at the top| first}"

TRAINED: dict[str, str] = {
    "rename_parameter": "rename <old> to <new>",
    "rename_variable": "rename <old> to <new>",
    "rename_function": "rename <old> to <new>",
    "add_docstring": 'add the docstring "<text>"',
    "remove_docstring": "remove the docstring",
    "write_docstring": "add a docstring",
    "add_type_hint": "add type hint <type> to <name>",
    "add_return_type": "add return type <type>",
    "remove_type_hints": "remove type hints",
    "change_quotes": "use <style> quotes",
    "to_fstring": "use f-strings",
    "add_guard": "add a guard clause: <action> if <condition>",
    "add_print": "print <name> at the start",
    "remove_prints": "remove print statements",
    "add_logging": "log <name> at the start with <level>",
    "add_parameter": "add parameter <new>=<value>",
    "change_default": "change the default of <name> to <value>",
    "remove_comments": "remove comments",
    "wrap_try": "wrap the body in try/except <error> and <action>",
    "invert_if": "invert the if <condition>",
    "make_async": "make the function async",
    "add_decorator": "add the decorator <decorator>",
    "remove_decorators": "remove the decorators",
}
"""What the model is told, by kind of edit."""

_RENAMING = (
    "{rename|change|refactor|update} " + _NOUN + "<old> " + _ARROW + " <new>",
    "{rename|change} the name of " + _NOUN + "<old> " + _ARROW + " <new>",
    "{rename|change} the {parameter|argument|variable|function|method}'s name from <old> to <new>",
    "{rename|change} " + _NOUN + "from <old> to <new>",
    "{replace|swap} the {name|variable|parameter|argument|function|method} <old> {with|by} <new>",
    _NOUN + "<old> should be {called|named|renamed to|renamed} <new>",
    "{use|prefer} {the name |}<new> {instead of|rather than|in place of} <old>",
    "{call|name} " + _NOUN + "<old> <new>{| instead}",
)

WORDINGS: dict[str, tuple[str, ...]] = {
    "rename_parameter": _RENAMING,
    "rename_function": (
        "{rename|change} {the |this |}{function|method}{'s name|} {to|into|as} <new>",
        "{call|name} {it|this function|the function} <new>{| instead}",
    ),
    "add_docstring": (
        "{add|insert|write|put|use|set|give it} {the |a |this |}{docstring|doc string}"
        '{| of| saying| that says| with the text| with text| reading|:| to} "<text>"',
        "{add|insert|write|put|use|set} {the |a |this |}{docstring|doc string}"
        "{| of| saying| that says| with the text| with text| reading|:| to} “<text>”",
        '{add|insert|write} {|the |a }"<text>" as {the |a |}docstring',
    ),
    "remove_docstring": (
        _REMOVE + _ALL + " {docstring|docstrings|doc string|doc strings|doc-string|doc comment}",
    ),
    "write_docstring": (
        "{add|write|create|generate|insert|include|provide} {a |an |the |some |a short |a brief |}"
        "{docstring|doc string|doc-string|documentation|docs|doc comment|docstrings}"
        "{| to " + "it| for it}",
        "{give|write} " + _IT + " {a docstring|documentation}",
        "{document|describe} " + _IT,
    ),
    "add_type_hint": (
        "{add|put|give|insert} {a |the |}{type hint|type annotation|type|annotation|hint}"
        "{ of| for|} <type> {to|for|on} {the |}{parameter |argument |variable |}<name>",
        "{add|put|insert} {a |the |}{type hint|type annotation|type|annotation} {to|for|on} "
        "{the |}{parameter |argument |}<name>: <type>",
        "{annotate|type|hint} {the |}{parameter |argument |}<name> {as|with|to be|to} <type>",
        "{give|set} {the |}{parameter |argument |}<name> the type <type>",
    ),
    "add_return_type": (
        "{add|set|declare|specify|put|insert|use} {the |a |}"
        "{return type|return annotation|return type hint|return type annotation|return hint}"
        "{| of| as|:| to| ->} <type>",
        "{annotate|declare} " + _IT + " {as returning|to return|with return type} <type>",
    ),
    "remove_type_hints": (
        _REMOVE + _ALL + " {type hints|type hint|typehints|type annotations|type annotation|"
        "annotations|typing|types|hints|type information}",
    ),
    "change_quotes": (
        "{use|prefer|switch to|change to|convert to} <style> {quotes|quote marks|quotation marks}"
        "{| instead| for all strings| for strings| only}",
        "{change|convert|switch|turn|replace} {all |the |all the |}{single quotes|double quotes|"
        "quotes|strings|string quotes} {to|into|with|by} <style>{ quotes| quoted|-quoted|}"
        "{ strings|}",
        "{make|turn} {all |the |all the |}{quotes|strings} <style>{ quoted|-quoted| quotes|}",
        "{use|prefer} <style>{ quoted|-quoted} strings",
    ),
    "to_fstring": (
        "{use|switch to|convert to|change to|prefer|make} {an |a |}"
        "{f-strings|f-string|f strings|f string|fstrings|fstring}"
        "{| instead| instead of format| instead of .format| instead of %| for formatting}",
        "{convert|change|turn|rewrite|replace} {the |all |}{string formatting|format calls|"
        "formatting|strings|format|.format|.format calls|str.format|percent formatting|"
        "% formatting|string concatenation} {to|into|with|by|using|as} {an |a |}"
        "{f-strings|f-string|f strings|fstrings|fstring}",
    ),
    "add_guard": (
        "<action> {if|when|whenever} <condition>{| at the start| first}",
        "add {a |an |}{guard|check|early return|early exit|guard clause}{:| that| which|} "
        "{if|when} <condition>{,| then|} <action>",
        "add {a |an |}{guard|check|early return|early exit|guard clause}{:|,|} <action> "
        "{if|when} <condition>",
    ),
    "add_print": (
        "{print|output|show} {the |}{parameter |argument |value of |variable |}<name>"
        "{ at the start| at the beginning| at the top| first}",
        "{add|insert|put} {a |}print {of|for|statement for|statement of|call for} {the |}"
        "{parameter |argument |value of |}<name>" + _AT_START,
        "{add|insert|put} print(<name>)" + _AT_START,
    ),
    "remove_prints": (
        _REMOVE + _ALL + " {print statements|print statement|prints|print calls|print call|"
        "debug prints|debug print statements|debugging prints|print lines|calls to print|"
        "calls of print|print()|print() calls|debug output}",
    ),
    "add_logging": (
        "log {the |}{parameter |argument |value of |variable |}<name> {with|at|using|as} "
        "{level |the level |}<level>{ level|}" + _AT_START,
        "{add|insert|put} {a |an |}<level> {log|log line|log message|logging|log call} "
        "{of|for|with} {the |}{parameter |value of |}<name>" + _AT_START,
    ),
    "add_parameter": (
        "{add|append|introduce} {a |an |the |another |new |a new |an optional |one more |}"
        "{parameter|argument|param|arg|keyword argument|optional parameter} {named |called |}<new>"
        "{ with default| with default value| with the default value| with the default|, default|"
        " defaulting to| that defaults to| with a default of| with a default value of|=| =} "
        "<value>",
        "{add|append|introduce} {a |an |the |another |new |a new |an optional |one more |}"
        "{parameter|argument|param|arg|keyword argument|optional parameter} <new>{=| = }<value>",
    ),
    "change_default": (
        "{change|set|update|make|switch} {the |}default {value |}{of|for} "
        "{the |}{parameter |argument |}<name> {to|=|be} <value>",
        "{change|set|update} {the |}{parameter |argument |}<name>'s default {value |}{to|=} "
        "<value>",
        "{the |}{parameter |argument |}<name> {should default|defaults} to <value>",
    ),
    "remove_comments": (
        _REMOVE + _ALL + " {comments|comment|code comments|inline comments|comment lines}",
    ),
    "wrap_try": (
        "{wrap|put|surround|enclose} {the |this |its |the whole |}{body|function body|code|"
        "function|everything} {in|with|into|inside} {a |}{try/except|try except|try-except|"
        "try/catch|try block|try}{ for| catching| with| that catches| handling| on|} "
        "<error>{ and|,| then| and then|:} <action>",
        "{catch|handle} <error>{ and|,| then| and then|:} <action>",
    ),
    "invert_if": (
        "{invert|negate|flip|reverse|swap} {the |}{if|condition|if condition|if statement|"
        "if-else|if/else|branches of if|branches of the if}{|:} <condition>",
    ),
    "make_async": (
        "{make|turn|convert|change} " + _IT + " {into |to |}{async|asynchronous|a coroutine|"
        "coroutine|an async function|an asynchronous function|an async method|an async def}",
        "{use|make it} async def",
    ),
    "add_decorator": (
        "{add|put|apply|use|attach|insert} {the |a |an |}<decorator> {decorator|as decorator|"
        "as a decorator|as the decorator}{| to it}",
        "{add|put|apply|attach|insert} {the |a |}{decorator |}@<decorator>{| to it| on top}",
        "{decorate|wrap} " + _IT + " {with|by} {the |}<decorator>{| decorator}",
    ),
    "remove_decorators": (_REMOVE + _ALL + " {decorators|decorator}",),
}
"""What people say, beside the wordings of the training."""
