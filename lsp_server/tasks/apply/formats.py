"""How models that merge snippets are asked, as data: one table.

Sources: the model card of FastApply-1.5B-v1.0 (Kortix), *Inference template*; that of
aiXapply-4B-RL (aiXcoder, Apache-2.0), *Call the Endpoint*.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from lsp_server.shared.contract.jobs import MOST_TOKENS, GenerateJob
from lsp_server.tasks.indentation import with_end_of, with_start_of
from lsp_server.text.documents.document import with_line_feeds


@dataclass(frozen=True, slots=True)
class ApplyFormat:
    """One format: a chat, whose answer is the whole file between two tags."""

    name: str
    models: str
    """What names of models hold that are asked so, a regular expression."""
    system: str
    message: str
    """With ``{code}``, ``{update}``, ``{language}`` and ``{instruction}``, a line of its own or
    nothing."""
    opens: str
    closes: str
    """Around the file in an answer."""


_ROWS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
FORMATS = tuple(ApplyFormat(**row) for row in _ROWS)


def apply_format(model: str) -> ApplyFormat | None:
    """The format of a model by its name; None where it was not made to merge snippets."""
    return next((each for each in FORMATS if re.search(each.models, model, re.IGNORECASE)), None)


def apply_job(
    made_for_it: ApplyFormat, code: str, snippet: str, instruction: str, language: str
) -> GenerateJob:
    """The file with a snippet put in, as a model is asked for it. Drafts come from the file."""
    code = with_line_feeds(code)
    told = f"- {' '.join(instruction.split())}\n" if instruction.strip() else ""
    parts = {"code": code, "update": with_line_feeds(snippet), "instruction": told}
    parts["language"] = language
    message = re.sub(
        rf"\{{({'|'.join(parts)})\}}", lambda named: parts[named[1]], made_for_it.message
    )
    return GenerateJob(
        messages=[("system", made_for_it.system), ("user", message)],
        prediction=f"{made_for_it.opens}{code}{made_for_it.closes}",
        max_tokens=MOST_TOKENS,
    )


def file_of_answer(made_for_it: ApplyFormat, answer: str, code: str) -> str | None:
    """The file that an answer has, beginning and ending as it did; None where it has none."""
    opens, closes = map(re.escape, (made_for_it.opens, made_for_it.closes))
    found = re.fullmatch(rf"\s*(?:<think>\s*</think>)?\s*{opens}(.*){closes}\s*", answer, re.DOTALL)
    plain = with_line_feeds(code)
    return with_start_of(plain, with_end_of(plain, found[1])) if found else None
