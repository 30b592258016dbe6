"""Jobs of an engine, and their results."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, get_args

from accel.verification.sampling import Sampling
from lsp_server.shared.contract.codec import read

MOST_TOKENS = 1 << 16
"""Of a text that is written, and of other files in a prompt."""
MOST_SEED = (1 << 64) - 1
MOST_ENTROPY_K = 50
MOST_SIMILAR_BYTES = 1 << 16
"""Of the texts that a client sends along for drafts."""
LEAST_TOP_P = 1e-6
"""The likeliest token alone."""


def _from(low: float, high: float, default: Any) -> Any:
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True, slots=True)
class ContextSnippet:
    """Text of another file that helps to complete this one."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class _OfDocument:
    """Belongs to a document of a workspace, and on a server to one of several users."""

    workspace: str
    """Absolute path of the workspace folder, empty when the document belongs to none. A server
    knows it by another name."""
    path: str
    """Path of the document, relative to the workspace where there is one."""
    _: KW_ONLY
    secret: bool = False
    """The document may hold secrets: nothing of it is written to the disk or leaves the machine."""
    owner: str = ""
    """Whose it is, on a server with several users: they share no caches and no outputs."""

    @property
    def scope(self) -> str:
        """The owner and workspace whose jobs share caches and earlier outputs."""
        return scope_of(self.owner, self.workspace)


@dataclass(frozen=True, slots=True)
class _WritingJob(_OfDocument):
    _: KW_ONLY
    max_tokens: int
    plain: bool = False
    """Decode without drafts, for comparison."""
    patience_s: float = 0.0
    """Refused where it has waited for so long, while others share all forwards; 0: never. A server
    sets it."""

    connection: str | None = None
    """By which connection it came to a server: those of one owner take turns. A server sets it."""

    @property
    def batch(self) -> str:
        """The name that all jobs of one request share, see ``GenerateJob``."""
        return ""


@dataclass(frozen=True, slots=True)
class _EditorJob(_WritingJob):
    _: KW_ONLY
    temperature: float = _from(0, 2, 0.0)
    top_p: float = _from(LEAST_TOP_P, 1, 1.0)
    seed: int = _from(-MOST_SEED, MOST_SEED, 0)
    similar: list[ContextSnippet] = field(default_factory=list)
    """Text of other files, sent to a server, which drafts from it as from an index."""

    @property
    def similar_to(self) -> tuple[str, str]:
        """Text before and after the cursor or the selection."""
        raise NotImplementedError

    @property
    def sampling(self) -> Sampling:
        """Return the settings by which the tokens of the text are chosen."""
        return Sampling(self.temperature, top_p=self.top_p, seed=self.seed)


@dataclass(frozen=True, slots=True)
class CompletionJob(_EditorJob):
    """Complete the text at the cursor; ``prefix`` and ``suffix`` are the document's halves."""

    operation: ClassVar[str] = "complete"
    prefix: str
    suffix: str
    language: str = ""
    repository: str = ""
    """Name of the workspace, which some models read before the paths of files."""
    snippets: list[ContextSnippet] = field(default_factory=list)
    """Open files of the client. What the index adds to them is chosen by the engine."""
    context_tokens: int = _from(-1, MOST_TOKENS, 0)
    """At most so many tokens of other files; -1: as many as are computed quickly."""
    prompt_seconds: float = _from(0, 60, 0.0)
    """The prompt is as long as the model computes in so many seconds; 0: as long as is usual."""
    opening: bool = False
    """The document was opened and its cursor is not known: ``prefix`` is its text from the start,
    ``suffix`` too. Only prompts are computed for such jobs."""
    head: str = ""
    """Beginning of a document whose ``prefix`` is cut at its start: what is imported."""
    single_line: bool = False
    gate: float = _from(0, 1, 0.0)
    """Joint probability below which nothing of the text is shown: spans say how likely they and the
    end before them are, and what would come after it is not written. 0: all of it is shown."""
    _: KW_ONLY
    max_tokens: int = _from(1, MOST_TOKENS, 64)

    @property
    def similar_to(self) -> tuple[str, str]:
        return self.prefix, self.suffix


@dataclass(frozen=True, slots=True)
class EditJob(_EditorJob):
    """Rewrite ``selection`` by ``instruction``; ``before`` and ``after`` surround it."""

    operation: ClassVar[str] = "edit"
    instruction: str
    selection: str
    before: str = ""
    after: str = ""
    language: str = ""
    _: KW_ONLY
    max_tokens: int = _from(1, MOST_TOKENS, 4096)
    entropy_k: int = _from(0, MOST_ENTROPY_K, 0)
    """Above 1, tokens of the draft model are taken that are among so many of the likeliest, where
    the model is unsure: EfficientEdit's verification, which is lossy. Greedy only."""
    sure: float | None = None
    """Probability that each token has by which a sure answer differs; None: nobody asks."""

    @property
    def similar_to(self) -> tuple[str, str]:
        return self.before + self.selection, self.after


@dataclass(frozen=True, slots=True)
class GenerateJob(_WritingJob):
    """Go on from a text, from token ids, from a conversation, or from both sides of a hole. One of
    ``text``, ``tokens``, ``messages`` and ``pieces`` is given; ``suffix`` goes with ``text``."""

    operation: ClassVar[str] = "generate"
    workspace: str = ""
    path: str = ""
    """Of the file that ``text`` is of."""
    text: str | None = None
    tokens: list[int] | None = None
    messages: list[tuple[str, str]] | list[dict[str, Any]] | None = None
    """Roles and texts, or objects as chat templates read them: ``role``, ``content``,
    ``tool_calls`` …"""
    tools: list[dict[str, Any]] = field(default_factory=list)
    """With ``messages``: functions that the model may call, as OpenAI describes them."""
    template_values: dict[str, Any] = field(default_factory=dict)
    """With ``messages``: further variables of the chat template."""
    thinks: bool = True
    """With ``messages``: the model may think before it answers."""
    grammar: str = ""
    """The text has to fit it, in llguidance's form of Lark; empty: any text does."""
    pieces: list[tuple[str, bool]] | None = None
    """Texts one after another, each with whether it is of the user: in the others the names of
    control tokens stand for them."""
    suffix: str | None = None
    """The text after the hole, for models that fill in the middle."""
    snippets: list[ContextSnippet] = field(default_factory=list)
    """Other files, with ``text``."""
    prompt_seconds: float = 0.0
    """With ``suffix``: the prompt is as long as is computed in so long; 0: as long as fits."""
    prediction: str = ""
    """What the answer is expected to be like, for drafts. It changes no text."""
    rewrites: list[tuple[str, str]] | None = None
    """Words and phrases that the prediction is likely to have replaced, old and new."""
    _: KW_ONLY
    max_tokens: int = _from(0, MOST_TOKENS, 256)
    """0: compute the prompt alone."""
    sampling: Sampling = field(default_factory=Sampling)
    """How the tokens of the text are chosen, ``logit_bias`` below left out."""
    max_seconds: float = 0.0
    """Stop at the first line end after so long; 0: never."""
    min_indent: int = 0
    """The text ends before a line that is indented by fewer characters."""
    logit_bias: list[tuple[int | str, float | None]] = field(default_factory=list)
    """Tokens, or texts that stand for all of their tokens, and what is added to their scores; None:
    they are never written."""
    stop: list[str] = field(default_factory=list)
    """The text ends before the first of these."""
    stop_tokens: list[int] = field(default_factory=list)
    """The text ends before the first of these, too."""
    ignore_end: bool = False
    """What ends a text is never written, ``stop_tokens`` left out."""
    logprobs: int | None = None
    """Tell how likely each token was by the model alone, before biases, penalties and temperature,
    and so many of the likeliest; None: do not."""
    batch: str = ""
    """What the jobs of one request call it: others begin once the first has computed its prompt,
    and take that over."""
    likely: bool = False
    """Spans are single tokens and say how likely they were (``Span.logprob``)."""


AnyJob = CompletionJob | EditJob | GenerateJob
JOBS: dict[str, type[AnyJob]] = {kind.operation: kind for kind in get_args(AnyJob)}
"""By what is asked for."""


def job_of(frame: dict[str, Any]) -> AnyJob:
    """Return the job of a frame. Raises KeyError for an unknown kind, Unreadable."""
    return read(JOBS[frame["kind"]], frame["job"])


COMPLETION, EDIT, PREFETCH, PREFILL = range(4)
"""Urgency of jobs, the most urgent first."""


@dataclass(frozen=True, slots=True)
class AcceptedText(_OfDocument):
    """A user took ``text``, which came after ``before``: later drafts may come from it."""

    operation: ClassVar[str] = "accepted"
    before: str
    text: str


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log probability of a token: its bytes, the value in nats, and the likeliest tokens of its
    position as bytes and values."""

    token: list[int]
    logprob: float
    likeliest: list[tuple[list[int], float]]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of generated text and where its tokens came from."""

    text: str
    source: str
    """Lower-case name of :class:`accel.draft_tree.Source`."""
    logprob: float | None = None
    """Of the one token that the text is of, given what comes before it, in nats; None where
    nobody asked."""
    token_logprob: TokenLogprob | None = None
    """The same with the likeliest tokens at its position."""
    end_logprob: float | None = None
    """Of the end of the text before that token: nothing more, or what comes after the cursor."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """Generated text and what it cost. Times in seconds."""

    text: str
    spans: list[Span]
    tokens: int
    forwards: int
    seconds: float
    prefill_seconds: float
    sources: dict[str, int]
    stopped_by: str
    """``end`` (end of text), ``stop`` (a stop rule), ``unsure`` (a completion's rest is too
    unlikely), ``length`` (token limit), ``loop`` (the text repeats itself), ``broken`` (a server's
    answer broke off) or ``cancelled``. The last four are no whole answers."""
    prompt_tokens: int = 0
    prompt_tokens_reused: int = 0
    """Those that were computed for an earlier request."""
    is_prompt_cut: bool = False
    """Text that was sent is not in the prompt, as it is too long or would take too long."""
    prediction_tokens: int = 0
    """Of the prediction, where there was one."""
    prediction_accepted: int = 0
    """Tokens that were drafted from the prediction and are the model's own."""
    batched_requests: int = 0
    """Over all of its forwards, prompts' among them: requests that shared them, itself counted."""
    batched_rows: int = 0
    """Its own rows in them."""
    is_unsure: bool = False
    """An edit that was asked to be ``sure`` is not."""

    @property
    def prompt_rows(self) -> int:
        """Tokens of the prompt that were computed for it."""
        return self.prompt_tokens - self.prompt_tokens_reused


def scope_of(owner: str, workspace: str) -> str:
    """Return a workspace alone where there is one user."""
    return f"{owner}\0{workspace}" if owner else workspace


def is_scope_of(scope: str, workspace: str) -> bool:
    """Return True if ``scope`` is that of a user's work in ``workspace``."""
    return scope == workspace or scope.endswith(f"\0{workspace}")


def unchanged(text: str) -> JobResult:
    """Return text that no model wrote, as a result that cost nothing."""
    spans = [Span(text, "original")]
    return JobResult(text, spans, 0, 0, 0.0, 0.0, {}, "end")
