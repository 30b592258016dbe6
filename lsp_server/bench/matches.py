"""``redraft train matches``: what drafts bring where the text's end stands in it earlier.

The model fills in lines of functions of installed packages, and at every token the default drafter
is asked for its match and its tree, of which the tokens that follow take some.
``accel.trust.BY_MATCH`` is the table that this prints. Nothing of the benches' cases takes part.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lsp_server.bench.acceptance import PACKAGES, Body, texts_of
from lsp_server.bench.measurement import hardly_repeats

if TYPE_CHECKING:
    from accel.draft_tree import DraftTree, TokenArray
    from accel.engine import Engine
    from accel.sources.mixture import MixtureDrafter
    from accel.sources.protocol import DraftRequest

NODES = 64
LINES = 3
"""Lines of a hole at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``redraft train matches``."""
    parser.add_argument("--model", metavar="DIR", help="model's folder; else the embedded one")
    parser.add_argument("--packages", default=PACKAGES, help="installed packages, by import name")
    parser.add_argument("--per-package", type=int, default=40, help="functions of each package")
    parser.add_argument("--tokens", type=int, default=96, help="tokens written for each function")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Print how many tokens a draft brings by the length of its match. Raises BenchError."""
    from accel.engine import Engine
    from accel.sources import shapes_of
    from accel.sources.mixture import MixtureDrafter
    from accel.trust import BY_MATCH

    engine = Engine.load(args.model)
    drafter = MixtureDrafter(shapes_of(engine.tokenizer))
    rng = random.Random(args.seed)
    texts = texts_of(
        engine.tokenizer,
        args.packages.split(),
        args.per_package,
        rng,
        lambda body: hole_in(body, rng),
    )
    brought, asked = np.zeros(len(BY_MATCH)), np.zeros(len(BY_MATCH), np.int64)
    for request, _ in texts:
        observe(engine, drafter, request, args.tokens, brought, asked)
    print("match  drafts  accepted each")
    for match, (total, count) in enumerate(zip(brought.tolist(), asked.tolist(), strict=True)):
        print(f"{match:5}  {count:6}  {total / max(count, 1):13.2f}")
    return 0


def hole_in(body: Body, rng: random.Random) -> Body:
    """Some lines of a body, from the first word on."""
    lines = body.answer.splitlines(keepends=True)
    count = rng.randint(1, min(LINES, len(lines)))
    first = rng.randint(0, len(lines) - count)
    hole = "".join(lines[first : first + count])
    indent = hole[: len(hole) - len(hole.lstrip(" "))]
    return Body(
        body.path,
        body.before + "".join(lines[:first]) + indent,
        hole[len(indent) :].rstrip("\n"),
        "\n" + "".join(lines[first + count :]) + body.after,
    )


def observe(
    engine: Engine,
    drafter: MixtureDrafter,
    request: DraftRequest,
    tokens: int,
    brought: NDArray[np.float64],
    asked: NDArray[np.int64],
) -> None:
    """Add the tokens that drafts bring at every token of what the model writes, and how often, by
    the length of the match; the last place stands for all longer ones. float64, int64 [matches].

    A text that loops is left out: there drafts are soon made at every step.
    """
    from accel.draft_tree import DraftTree
    from accel.request import GenerationRequest

    suffix = request.suffix if request.suffix is not None else np.empty(0, np.int32)
    prompt = engine.fim_prompt(
        *(engine.tokenizer.decode(each.tolist()) for each in (request.prompt, suffix))
    )
    wanted = GenerationRequest(prompt.tokens, tokens, stop_tokens=prompt.stop_tokens)
    written = engine.generate(wanted).finish().tokens
    if not hardly_repeats(written.tolist()):
        return
    request = replace(request, prompt=prompt.text, suffix=prompt.suffix_tokens, given=prompt.tokens)
    drafter.begin(request)
    for place in range(len(written)):
        match = min(drafter.match(), len(brought) - 1)
        prices = engine.planner.prices(1, len(request.prompt) + place, 1.0, drafter.step_s)
        tree = drafter.draft_within(min(NODES, len(prices.slopes) - 1), prices)
        brought[match] += accepted_of(tree, written[place:])
        asked[match] += 1
        drafter.commit(DraftTree.empty(), [], written[place : place + 1])


def accepted_of(tree: DraftTree, following: TokenArray) -> int:
    """Tokens of a tree that are those that follow."""
    node = -1
    for count, token in enumerate(following.tolist()):
        children = np.flatnonzero((tree.parents == node) & (tree.tokens == token))
        if not len(children):
            return count
        node = int(children[0])
    return len(following)
