"""``redraft train matches``: what drafts bring where the text's end stands in it earlier.

The model fills in lines of functions of installed packages, and at every token the default drafter
is asked for its match, its chain, its tree, and what it speculates where the model has a
speculator, of which the tokens that follow take some. ``FIRST``, ``NEXT``, ``MORE`` and
``SPECULATED`` of ``accel.choice`` are the columns that this prints. Nothing of the benches' cases
takes part.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from accel.choice import FIRST
    from accel.engine import Engine
    from accel.sources import default_drafter

    engine = Engine.load(args.model)
    drafter = default_drafter(engine.tokenizer, speculator=engine.model.speculator)
    rng = random.Random(args.seed)
    texts = texts_of(
        engine.tokenizer,
        args.packages.split(),
        args.per_package,
        rng,
        lambda body: hole_in(body, rng),
    )
    found = Found.room(len(FIRST))
    for request, _ in texts:
        observe(engine, drafter, request, args.tokens, found)
    print("match   asked  first   next   more  speculated")
    for match, asked in enumerate(found.asked.tolist()):
        right, times = found.right[match], max(asked, 1)
        following = right[1:].sum() / max(right[:-1].sum(), 1)
        more = found.more[match] / times
        guessed = found.speculated[match] / times
        print(
            f"{match:5}  {asked:6}  {right[0] / times:5.2f}  {following:5.2f}  {more:5.2f}"
            f"  {guessed:10.2f}"
        )
    return 0


class Found(NamedTuple):
    """What was seen by the length of the match, the last place for all longer ones.

    asked: int64 [matches], how often; right: int64 [matches, NODES], chains that were right up to
    each node; more: int64 [matches], accepted tokens of trees beyond those of chains that pay;
    speculated: int64 [matches], accepted tokens of what a speculator guessed.
    """

    asked: NDArray[np.int64]
    right: NDArray[np.int64]
    more: NDArray[np.int64]
    speculated: NDArray[np.int64]

    @classmethod
    def room(cls, matches: int) -> Found:
        """Nothing seen."""
        whole = np.zeros(matches, np.int64)
        return cls(whole, np.zeros((matches, NODES), np.int64), whole.copy(), whole.copy())


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
    engine: Engine, drafter: MixtureDrafter, request: DraftRequest, tokens: int, found: Found
) -> None:
    """Add what drafts bring at every token of what the model writes.

    A text that loops is left out: there chains are right for as long as they are.
    """
    from accel.choice import Choice
    from accel.draft_tree import DraftTree
    from accel.request import GenerationRequest
    from accel.sources.protocol import Speculating
    from accel.trust import Trust

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
    states = states_of(engine, prompt.tokens, written)
    for place in range(len(written)):
        if place and isinstance(drafter, Speculating):
            drafter.note_state(*states[place - 1])
        match, context = min(drafter.match(), len(found.asked) - 1), len(request.prompt) + place
        right = accepted_of(drafter.chain(NODES), written[place:])
        nodes = int(engine.planner.chains(1, context).nodes[match]) if match else 0
        prices = engine.planner.prices(1, context, 1.0, drafter.step_s)
        tree = drafter.draft_within(min(NODES, len(prices.slopes) - 1), prices)
        found.asked[match] += 1
        found.right[match, :right] += 1
        found.more[match] += accepted_of(tree, written[place:]) - min(right, nodes)
        if isinstance(drafter, Speculating):
            odds = Choice(Trust()).odds(engine.planner.chains(1, context))
            guessed = drafter.speculate(odds, NODES)
            found.speculated[match] += accepted_of(guessed, written[place:])
        drafter.commit(DraftTree.empty(), [], written[place : place + 1])


def states_of(
    engine: Engine, prompt: TokenArray, written: TokenArray
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The model's states where it chose each token of what it wrote."""
    from accel.draft_tree import DraftTree
    from accel.rows import chain_rows

    if engine.model.speculator is None:
        return []
    session, states = engine.session(), []
    engine.extend(session, prompt[:-1], lambda: False)
    for token in [prompt[-1], *written[:-1]]:
        row = np.array([token], np.int32)
        engine.verify(chain_rows(row, 0), DraftTree.empty(), session)
        last, middle = engine.model.state_of(0)
        states.append((last.copy(), middle.copy()))
        session.keep(row, [0])
    return states


def accepted_of(tree: DraftTree, following: TokenArray) -> int:
    """Tokens of a tree that are those that follow."""
    node = -1
    for count, token in enumerate(following.tolist()):
        children = np.flatnonzero((tree.parents == node) & (tree.tokens == token))
        if not len(children):
            return count
        node = int(children[0])
    return len(following)
