"""How models that merge snippets are asked, as data: one table.

Source: the model card of FastApply-1.5B-v1.0 (Kortix), *Inference template*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """With ``{code}``, ``{update}`` and ``{instruction}``, a line of its own or nothing."""
    opens: str
    closes: str
    """Around the file in an answer."""


FORMATS = (
    ApplyFormat(
        "fast-apply",
        r"fast[-_ ]?apply",
        "You are a coding assistant that helps merge code updates, ensuring every modification is "
        "fully integrated.",
        "Merge all changes from the <update> snippet into the <code> below.\n"
        "- Preserve the code's structure, order, comments, and indentation exactly.\n"
        "- Output only the updated code, enclosed within <updated-code> and </updated-code> tags.\n"
        "- Do not include any additional text, explanations, placeholders, ellipses, or code "
        "fences.\n{instruction}\n"
        "<code>{code}</code>\n\n<update>{update}</update>\n\nProvide the complete updated code.",
        "<updated-code>",
        "</updated-code>",
    ),
)


def apply_format(model: str) -> ApplyFormat | None:
    """The format of a model by its name; None where it was not made to merge snippets."""
    return next((each for each in FORMATS if re.search(each.models, model, re.IGNORECASE)), None)


def apply_job(made_for_it: ApplyFormat, code: str, snippet: str, instruction: str) -> GenerateJob:
    """The file with a snippet put in, as a model is asked for it. Drafts come from the file."""
    code = with_line_feeds(code)
    told = f"- {' '.join(instruction.split())}\n" if instruction.strip() else ""
    parts = {"code": code, "update": with_line_feeds(snippet), "instruction": told}
    message = re.sub(
        r"\{(code|update|instruction)\}", lambda found: parts[found[1]], made_for_it.message
    )
    return GenerateJob(
        messages=[("system", made_for_it.system), ("user", message)],
        prediction=f"{made_for_it.opens}{code}{made_for_it.closes}",
        max_tokens=MOST_TOKENS,
    )


def file_of_answer(made_for_it: ApplyFormat, answer: str, code: str) -> str | None:
    """The file that an answer has, beginning and ending as it did; None where it has none."""
    opens, closes = map(re.escape, (made_for_it.opens, made_for_it.closes))
    found = re.fullmatch(rf"\s*{opens}(.*){closes}\s*", answer, re.DOTALL)
    plain = with_line_feeds(code)
    return with_start_of(plain, with_end_of(plain, found[1])) if found else None
