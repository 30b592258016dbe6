"""``train acceptance``: learn the prior of the acceptance model from installed packages.

Bodies of functions of some packages are the answers; what a drafter may know is the rest of their
package, and common code made of all other packages. Nothing of the benches' cases takes part.
"""

from __future__ import annotations

import argparse
import ast
import random
import site
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsp_server.shared.errors import BenchError
from repo_index.datastore import COMMON, NO_FILES_DEAD, REPOSITORY, IndexSnapshot
from repo_index.segment import Segment
from tests.benchmarks.datastores import LEFT_OUT, common_token_files

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.drafting.base import ContinuationIndex, DraftRequest
    from accel.text.tokenizer import Tokenizer

PACKAGES = (
    "accelerate anyio attr cattrs fontTools fsspec huggingface_hub hypothesis jinja2 markdown_it "
    "mpl_toolkits mpmath networkx pathspec peft pluggy psutil pydantic pygls pyparsing torchgen "
    "tqdm watchdog"
)
"""Those of the development environment that are neither cases nor the bulk of common code."""

PROMPT_TOKENS = 2048
ANSWER_TOKENS = 512
MOST_FILES = 200
LINES = range(3, 61)
NODES = 64
CANDIDATES_OF_NODE = 90
INPUTS_OF_CANDIDATE = 5
ROUNDS = (0.08, 1.0, 1.0)
"""Share of the answers in each round; the first two teach the model where to look."""


class Body(NamedTuple):
    """A function's body, and what stands before and after it in its file."""

    path: str
    before: str
    answer: str
    after: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``tests.benchmarks train acceptance``."""
    parser.add_argument("--out", type=Path, required=True, help="file of the weights (.npz)")
    parser.add_argument("--model", metavar="DIR", help="whose tokenizer; else the chosen model's")
    parser.add_argument("--packages", default=PACKAGES, help="installed packages, by import name")
    parser.add_argument("--per-package", type=int, default=45, help="functions of each package")
    parser.add_argument("--nodes", type=int, default=150_000, help="most examples of a round")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Replay, fit, replay with what was learnt, fit again; write. Raises BenchError."""
    from accel.drafting import shapes_of
    from accel.drafting.retrieval.drafter import RetrievalDrafter
    from accel.models.hub import find_model_path
    from accel.models.model_file import model_file
    from tests.benchmarks.training.acceptance_fit import Examples, fit, observe
    from tests.benchmarks.training.acceptance_inputs import random_weights

    tokenizer = model_file(find_model_path(args.model)).tokenizer
    rng = random.Random(args.seed)
    texts = list(texts_of(tokenizer, args.packages.split(), args.per_package, rng))
    rng.shuffle(texts)
    candidates = args.nodes * CANDIDATES_OF_NODE
    room = Examples.allocate(args.nodes, candidates, candidates * INPUTS_OF_CANDIDATE)
    weights = random_weights(args.seed)
    for number, share in enumerate(ROUNDS):
        drafter = RetrievalDrafter(shapes_of(tokenizer), weights=weights)
        room.firsts.fill(0)
        count = observe(drafter, texts[: max(1, int(share * len(texts)))], NODES, room)
        loss = fit(weights, room, count, epochs=args.epochs, seed=args.seed + number)
        print(f"round {number + 1}: {count} nodes, {loss:.3f} nats each", flush=True)
    with args.out.open("wb") as file:
        np.savez(file, **weights._asdict())
    return 0


def texts_of(
    tokenizer: Tokenizer,
    packages: list[str],
    per_package: int,
    rng: random.Random,
    part_of: Callable[[Body], Body] = lambda body: body,
) -> Iterator[tuple[DraftRequest, TokenArray]]:
    """Requests with their answers, which are ``part_of`` bodies of functions. Raises BenchError for
    a package that is not installed."""
    from accel.drafting.base import DraftRequest
    from tests.benchmarks.datastores import encode_batch

    common = _common(tokenizer, packages)
    for package in packages:
        files = _files_of(package, rng)
        tokens = dict(zip(files, encode_batch(tokenizer, list(files.values())), strict=True))
        whole = Segment.from_files(tokens)
        bodies = [body for path, text in files.items() for body in bodies_of(path, text)]
        for body in map(part_of, rng.sample(bodies, min(per_package, len(bodies)))):
            before, after = tokenizer.encode(body.before), tokenizer.encode(body.after)
            own = {path: ids for path, ids in (("<", before), (">", after)) if len(ids)}
            dead = np.array([path == body.path for path in whole.paths], np.bool_)
            parts: list[tuple[Segment, int, NDArray[np.bool_]]] = [(whole, REPOSITORY, dead)]
            if own:
                parts.append((Segment.from_files(own), REPOSITORY, NO_FILES_DEAD))
            index = IndexSnapshot([*parts, (common, COMMON, NO_FILES_DEAD)])
            request = DraftRequest(
                before[-PROMPT_TOKENS:], after, index=cast("ContinuationIndex", index)
            )
            yield request, tokenizer.encode(body.answer)[:ANSWER_TOKENS]


def _common(tokenizer: Tokenizer, packages: list[str]) -> Segment:
    """Common code without the packages that answers are taken from."""
    files = {
        path: ids
        for path, ids in common_token_files(tokenizer, None).items()
        if not set(packages) & set(Path(path).parts)
    }
    return Segment.from_files(files)


def _files_of(package: str, rng: random.Random) -> dict[str, str]:
    """Path to text of at most ``MOST_FILES`` modules of an installed package."""
    folders = [Path(folder, package) for folder in site.getsitepackages()]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        raise BenchError(f"{package} is not installed; choose others by --packages")
    paths = sorted(
        path
        for path in folder.rglob("*.py")
        if 0 < path.stat().st_size <= 200_000 and not LEFT_OUT & set(path.parts)
    )
    chosen = rng.sample(paths, min(MOST_FILES, len(paths)))
    return {str(path): path.read_text("utf-8", errors="replace") for path in sorted(chosen)}


def bodies_of(path: str, text: str) -> Iterator[Body]:
    """Every function's body behind its docstring, where it has a number of lines in ``LINES``."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first, last = node.body[0].lineno, node.end_lineno or 0
        if ast.get_docstring(node, clean=False) is not None:
            first = (node.body[0].end_lineno or first) + 1
        if last - first + 1 in LINES and first > node.lineno:
            yield Body(
                path,
                "".join(lines[: first - 1]),
                "".join(lines[first - 1 : last]),
                "".join(lines[last:]),
            )
