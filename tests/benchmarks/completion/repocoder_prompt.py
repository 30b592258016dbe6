"""RepoCoder's iterative prompt: retrieve, generate, retrieve with what was generated, and again.

Fengji Zhang et al., "RepoCoder: Repository-Level Code Completion Through Iterative Retrieval and
Generation", EMNLP 2023. What is retrieved comes from the index that drafting uses
(``similar_windows``) and stands in the prompt as comments, which every model can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsp_server.shared.contract.jobs import ContextSnippet
from tests.benchmarks.completion.similar_windows import STEP_LINES, Decode, Encode

MARGIN_TOKENS = 16

Find = Callable[[str], Sequence[ContextSnippet]]
"""From a text to the windows most like its last lines, the most similar first."""
Generate = Callable[[str], str]
"""From the text before the cursor to what the model writes behind it."""


def iterated(
    find: Find,
    generate: Generate,
    prefix: str,
    *,
    encode: Encode,
    decode: Decode,
    budget: int,
    rounds: int = 2,
) -> str:
    """The text of the last of ``rounds`` generations. ``budget``: tokens before the cursor."""
    written = ""
    for _ in range(rounds):
        # The query is the window around the cursor, half of it written by the model.
        ahead = "".join(written.splitlines(keepends=True)[:STEP_LINES])
        found = find(prefix + ahead)
        written = generate(with_fragments(found, prefix, encode, decode, budget))
    return written


def with_fragments(
    snippets: Sequence[ContextSnippet], prefix: str, encode: Encode, decode: Decode, budget: int
) -> str:
    """``snippets`` as comments before the end of ``prefix``, in ``budget`` tokens together: the
    best ones that fit into two thirds of them, the most similar next to the text."""
    heading = "# Here are some relevant code fragments from other files of the repo:\n"
    block = ""
    for snippet in snippets:
        fragment = f"# The below code fragment can be found in:\n# {snippet.path}\n# {'-' * 50}\n"
        fragment += "".join(f"# {line}\n" for line in snippet.text.splitlines())
        if len(encode(heading + fragment + block)) > 2 * budget // 3:
            break
        block = fragment + block
    block = heading + block + "\n" if block else ""
    tokens = encode(prefix)
    room = budget - len(encode(block)) - MARGIN_TOKENS
    if len(tokens) > room:
        kept = decode(tokens[-room:])
        prefix = kept[kept.find("\n") + 1 :]
    return block + prefix
