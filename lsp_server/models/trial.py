"""Tries a model on a small case, in its own prompt formats, before the user depends on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lsp_server.shared.contract.jobs import CompletionJob, EditJob
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import RedraftError

_BEFORE = "def area(width, height):\n    return "
_BEHIND = "\n\n\nprint(area(2, 3))\n"
_EDITED = "limit = 10\n"
_INSTRUCTION = "change 10 to 20"
_TOKENS = 24


@dataclass(slots=True)
class Trial:
    """text: what the model wrote into a hole; edit: what it made of a line by an instruction, None
    where it takes none; seconds: of the completion; problems: what is wrong with it."""

    text: str = ""
    edit: str | None = None
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def try_model(path: str, report: Callable[[str], None]) -> Trial:
    """Load a model and have it complete and edit. ``report`` hears how far it is. Raises
    RedraftError or AccelError where it cannot be loaded."""
    from accel.errors import AccelError
    from accel.text.format_check import format_problems, template_problems
    from lsp_server.engine.service import EngineService

    service = EngineService(EngineOptions(path=path, common=False))
    trial = Trial()
    try:
        service.load(report)
        service.warm_up()
        report("trying the model")
        tokenizer = service.engine.tokenizer
        problems = [*format_problems(tokenizer), *template_problems(tokenizer)]
        trial.problems += dict.fromkeys(problems)
        job = CompletionJob("", "area.py", _BEFORE, _BEHIND, max_tokens=_TOKENS, single_line=True)
        result = service.write(job)
        trial.text, trial.seconds = result.text, result.seconds + result.prefill_seconds
        if not trial.text.strip():
            trial.problems.append("it wrote nothing into a hole that needs an expression")
        if tokenizer.chat_template is not None:
            words = _INSTRUCTION, _EDITED
            edit = EditJob("", "limit.py", *words, language="python", max_tokens=_TOKENS)
            trial.edit = service.write(edit).text
    except (RedraftError, AccelError) as error:
        if not trial.text:
            raise
        trial.problems.append(f"it does not edit: {error}")
    finally:
        service.close()
    return trial
