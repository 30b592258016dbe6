"""What the small model computes and writes, as one document: here and on an emulated Arm it must
say the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any, get_args

import numpy as np

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import Source
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.execution.forwards import alone
from accel.files.model_options import KvType
from accel.models.batch import chain_batch, tree_batch
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.opening import decoder_of
from accel.models.cpu.quantised.instruction_sets import chosen
from accel.models.model_file import model_file
from accel.native.levels import level_in_use
from accel.planning.planner import AdaptivePlanner
from tests.draft_trees import merged
from tests.small_model import SMALL_MODEL

CODE = '''def area(rectangle):
    """Width by height."""
    return rectangle.width * rectangle.height


def perimeter(rectangle):
    """Twice the sum of both."""
    return 2 * (rectangle.width + rectangle.height)


def volume(box):
    """Area by depth."""
    return '''


def engine_of(kv_type: KvType) -> Engine:
    """The small model in int8, without measuring what its forwards cost."""
    about = model_file(SMALL_MODEL)
    model = CompiledLlama(decoder_of(about, "int8"), kv_type)
    costs = ForwardCosts([512], [1, 64], np.array([[1e-3, 4e-3]]))
    return Engine(model, about.tokenizer, AdaptivePlanner(costs), name="small", threads=1)


def bits_of(engine: Engine) -> list[str]:
    """Of the logits of a prompt, of one row, of a tree, and of one row behind a path of it."""
    tokens = np.array(engine.tokenizer.encode(CODE), np.int32)
    session, found = engine.session(), []
    branches = [tokens[place : place + 4] for place in (3, 9, 20)]
    tree = merged(branches, Source.BUFFER)
    for batch, rows in (
        (chain_batch(tokens[:40], 0, wants_numbers=True), list(range(40))),
        (chain_batch(tokens[40:41], 0, wants_numbers=True), [0]),
        (tree_batch(tokens[41:42], tree, wants_numbers=True), [0, 1]),
        (chain_batch(tokens[42:43], 0, wants_numbers=True), [0]),
    ):
        logits = alone(engine.forward_steps(batch, session))
        numbers = np.stack([logits.row(row) for row in range(len(batch))])
        found.append(hashlib.sha256(numbers.tobytes()).hexdigest())
        session.commit(batch.tokens[rows], rows)
    return found


def texts_of(engine: Engine) -> list[str]:
    """What is written in a session, drafted, as somebody types, deletes and goes elsewhere."""
    session, found = engine.session(), []
    for prompt in (CODE, CODE + "area(", CODE + "area(box) ", CODE[:-30], CODE[40:], CODE):
        tokens = np.array(engine.tokenizer.encode(prompt), np.int32)
        request = GenerationRequest(tokens, max_tokens=16, drafter=RetrievalDrafter())
        generation = engine.generate(request, session)
        for _ in generation:
            pass
        found.append(generation.text)
    return found


def main() -> None:
    """Print the document."""
    document: dict[str, Any] = {"level": level_in_use(), "instructions": chosen()}
    document |= {"bits": {}, "texts": {}}
    for kv_type in get_args(KvType):
        engine = engine_of(kv_type)
        document["bits"][kv_type] = bits_of(engine)
        document["texts"][kv_type] = texts_of(engine)
    print(json.dumps(document))
