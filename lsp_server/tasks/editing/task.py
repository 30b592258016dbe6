"""An edit as tasks: a selection that does not fit into one answer is edited piece by piece."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from lsp_server.shared.contract.jobs import EditJob, JobResult, Span
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.editing.answers import code_of_answer
from lsp_server.tasks.editing.loop_watch import LoopWatch
from lsp_server.tasks.editing.shown_text import ShownText, readable
from lsp_server.tasks.editing.splice import spliced
from lsp_server.tasks.indentation import with_end_of, with_indentation_of, with_start_of
from lsp_server.tasks.steps import Steps
from lsp_server.tasks.task import CUT, EDIT_NODES, Cancelled, Task, TaskList, new_task
from lsp_server.text.documents.document import line_end, split_lines
from lsp_server.text.line_diff import opcodes
from lsp_server.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.text.prompts import Prompt

PIECE_SHARE = 4
"""A selection that takes more than this part of the model's positions is edited piece by piece."""
LONGEST_ANSWER = 2
ANSWER_TOKENS = 256
"""An answer longer than so many times its prompt, and so many tokens more, has lost its way."""
_ADDED = (
    *("tokens", "forwards", "seconds", "prefill_seconds"),
    *("prompt_tokens", "prompt_tokens_reused"),
)
"""What the pieces of an edit cost together is the sum of what each cost."""

_BLOCK = re.compile(
    r"\s*(?:@|async\s+def\b|def\b|class\b|function\b|fn\b|func\b|pub\b|impl\b|struct\b|enum\b|"
    r"interface\b|export\b|public\b|private\b|protected\b|static\b|type\b|module\b|trait\b)"
)
_NEVER = 1 << 20


def edit_work(engine: Engine, job: EditJob, index: Any, cancelled: Cancelled) -> TaskList:
    """Rewrite a selection, its pieces one after another. Raises AccelError; the result raises
    EditRefused if the answer does not fit."""
    shown_text, shown_edit = _shown(engine, job)
    tasks = [
        edit_task(engine, shown_edit, piece, index, cancelled)
        for piece in _pieces(engine, shown_edit.selection)
    ]
    return TaskList(tasks, lambda results: put_in(shown_text, job, joined(results)))


def edit_task(engine: Engine, job: EditJob, piece: str, index: Any, cancelled: Cancelled) -> Task:
    """Return the task that rewrites a piece of a job's selection. Raises AccelError."""
    from accel.verification.choosing import entropy_tokens

    prompt = edit_prompt(engine, replace(job, selection=piece))
    watch = LoopWatch(piece, cancelled)
    key = ("edit", job.owner)
    task = new_task(key, job, prompt, job.sampling, index, watch.cancelled, EDIT_NODES)
    task.copies = True
    task.request.max_tokens = _answer_tokens(engine, job, prompt)
    task.request.stop_rule = stopping.fence(prompt.fence) if prompt.fence else None
    task.request.confidences = job.sure is not None
    if job.entropy_k > 1:
        task.request.relaxed = partial(entropy_tokens, top_k=job.entropy_k)

    def read(steps: Steps) -> Steps:
        result = answer((yield from watch.over(steps)), prompt, job, piece)
        if job.sure is None:
            return result
        original = [*map(engine.tokenizer.decode, engine.tokenizer.encode(piece)[:, None])]
        return replace(result, is_unsure=is_unsure(watch.spans, original, job.sure))

    task.read = read
    return task


def is_unsure(spans: list[Span], original: list[str], sure: float) -> bool:
    """Return True if one of the tokens by which ``spans`` differ from ``original``, or the first
    after them, is less likely than ``sure``; False where spans do not say how likely they are."""
    changes = opcodes(original, [span.text for span in spans])
    return any(
        math.exp(span.logprob) < sure
        for kind, _, _, first, last in changes
        for span in spans[first : last + 1]
        if kind != "equal" and span.logprob is not None
    )


def _pieces(engine: Engine, selection: str) -> list[str]:
    most = engine.max_positions // PIECE_SHARE

    def fits(text: str) -> bool:
        is_short = len(text) <= most * engine.tokenizer.longest_token
        return is_short and len(engine.tokenizer.encode(replace_surrogates(text))) <= most

    return split_at_definitions(selection, fits)


def _shown(engine: Engine, job: EditJob) -> tuple[ShownText, EditJob]:
    """Return the text that the model reads of an edit, and the edit with that text in place of its
    own."""
    tokenizer = engine.tokenizer

    @cache
    def legible(text: str) -> bool:
        """Return whether the vocabulary carries ``text`` unchanged."""
        return text.isascii() or tokenizer.decode(tokenizer.encode(text)) == text

    shown_text = ShownText(job.selection, job.instruction, legible=legible)
    return shown_text, replace(
        job,
        selection=shown_text.text,
        instruction=shown_text.instruction,
        before=readable(job.before),
        after=readable(job.after),
    )


def edit_prompt(engine: Engine, job: EditJob) -> Prompt:
    """Return the prompt of an edit. Raises AccelError."""
    from accel.errors import PromptTooLong
    from accel.text.prompts import edit_prompt as prompt_of
    from accel.text.token_counts import tokens_beyond

    instruction, selection = map(replace_surrogates, (job.instruction, job.selection))
    most = engine.max_positions // 2
    if least := tokens_beyond(engine.tokenizer, (instruction, selection), most):
        raise PromptTooLong(
            f"instruction and selection have more than {least} tokens and {most} fit; select less"
        )
    return prompt_of(
        engine.tokenizer,
        instruction,
        selection,
        before=replace_surrogates(job.before),
        after=replace_surrogates(job.after),
        language=job.language,
        path=job.path,
        budget=most,
    )


def _answer_tokens(engine: Engine, job: EditJob, prompt: Prompt) -> int:
    """Return the most tokens that an answer may have."""
    room = engine.max_positions - len(prompt.tokens) - 1
    longest = LONGEST_ANSWER * len(prompt.tokens) + ANSWER_TOKENS
    return min(job.max_tokens, room, longest)


def answer(result: JobResult, prompt: Prompt, job: EditJob, original: str) -> JobResult:
    """Return the code of an answer about ``original``, a piece of the job's selection, ending as
    that does. Raises EditRefused where the code is not clear."""
    if result.stopped_by in CUT:
        return result
    if prompt.fence:
        code = code_of_answer(
            result.text,
            original,
            opening=f"{prompt.fence}{job.language}",
            language=job.language,
            instruction=job.instruction,
        )
        result = replace(result, text=code)
    return fitted(result, original)


def fitted(result: JobResult, original: str) -> JobResult:
    """Return the code of an answer with the blank lines and the indentation of the original."""
    complete = with_start_of(original, with_end_of(original, result.text))
    return replace(result, text=with_indentation_of(original, complete))


def joined(results: list[JobResult]) -> JobResult:
    """Return the answers for the pieces of a selection as one."""
    return JobResult(
        text="".join(result.text for result in results),
        spans=[span for result in results for span in result.spans],
        sources=dict(sum((Counter(result.sources) for result in results), Counter())),
        stopped_by=results[-1].stopped_by,
        is_unsure=any(result.is_unsure for result in results),
        **{name: sum(getattr(result, name) for result in results) for name in _ADDED},
    )


def put_in(shown_text: ShownText, job: EditJob, result: JobResult) -> JobResult:
    """Return the result with the answer put into the text that the user selected; an answer that
    was cut stays as it is. Raises EditRefused where the answer does not fit."""
    if result.stopped_by not in CUT:
        around = [*split_lines(job.before), *split_lines(job.selection), *split_lines(job.after)]
        end = next((ending for line in around if (ending := line_end(line))), "\n")
        tabs = any(line.startswith("\t") for line in around)
        return replace(result, text=spliced(shown_text, result.text, end, tabs))
    return result


def split_at_definitions(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Pieces of whole lines that make up ``text``, each of which ``fits`` where that can be: cut
    before definitions, the least indented first, else at blank lines."""
    if fits(text):
        return [text]
    lines = text.splitlines(keepends=True)
    cut = _best_cut(lines)
    if cut is None:
        return [text]
    head, tail = "".join(lines[:cut]), "".join(lines[cut:])
    return _joined([*split_at_definitions(head, fits), *split_at_definitions(tail, fits)], fits)


def _best_cut(lines: list[str]) -> int | None:
    """Return the best line to cut before: by kind of border, then by nearness to the middle."""
    cuts = [
        (rank, abs(2 * number - len(lines)), number)
        for number in range(1, len(lines))
        if (rank := _rank(lines, number)) is not None
    ]
    return min(cuts)[2] if cuts else None


_BELONG_TO_NEXT = ("@", "#", "//", "*", "/*", '"""')


def _rank(lines: list[str], number: int) -> int | None:
    """Return the quality of a cut before a line: lower is better, None for no cut."""
    line, before = lines[number], lines[number - 1]
    indent = len(line) - len(line.lstrip())
    if not line.strip():
        return None
    touching = before.lstrip().startswith(_BELONG_TO_NEXT)
    if _BLOCK.match(line) and not touching:
        return indent
    return None if before.strip() else _NEVER + indent


def _joined(pieces: list[str], fits: Callable[[str], bool]) -> list[str]:
    """Neighbours put together again where both fit into one."""
    joined = [pieces[0]]
    for piece in pieces[1:]:
        if fits(joined[-1] + piece):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined
