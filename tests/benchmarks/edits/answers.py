"""What becomes of lines by a model's answer, as the server reads it."""

from __future__ import annotations

from accel.text.prompts import Prompt
from lsp_server.shared.contract.jobs import EditJob, unchanged
from lsp_server.tasks.editing.task import answer


def served_text(text: str, prompt: Prompt, job: EditJob) -> str:
    """The code of a whole answer. Raises EditRefused where that is not clear."""
    return answer(unchanged(text), prompt, job, job.selection).text
