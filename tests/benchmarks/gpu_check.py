"""``tests.benchmarks gpu-check``: whether a GPU gives the texts that it should, and how fast.

At most four minutes on one GPU, with torch and Triton alone; public shapes with random weights. On
a CPU the same runs, unrecorded, with a tiny shape.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from accel.models.base import Cache
    from accel.models.batch import ForwardBatch
    from accel.models.cuda.pooled_llama import PooledLlama

ROWS = (1, 4, 16, 32, 64)
CLIENTS, CLIENTS_ON_CPU = (1, 2, 4, 8, 16), (1, 16)
TOKENS, TOKENS_ON_CPU = 48, 4
"""Of each text, and of the longest of the prompts ten times as many."""
ACCEPTANCE = 0.75
"""Of a drafted token whose parent was right; drafts are chains of the text to come."""
CONTEXT = 1024
"""Tokens before the rows that are timed."""
COPIED_BYTES = 1 << 30
TIMES = 20
"""Of which the median counts."""

_QWEN = {
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
}


def _sizes(
    hidden: int, layers: int, heads: int, kv_heads: int, inner: int, vocabulary: int, *, tied: bool
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": inner,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }


SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny": ("llama", _sizes(64, 2, 4, 2, 96, 512, tied=True) | {"max_position_embeddings": 4096}),
    "135M": (
        "llama",
        _sizes(576, 30, 9, 3, 1536, 49152, tied=True) | {"max_position_embeddings": 8192},
    ),
    "1.5B": ("qwen2", _sizes(1536, 28, 12, 2, 8960, 151936, tied=True) | _QWEN),
    "7B": ("qwen2", _sizes(3584, 28, 28, 4, 18944, 152064, tied=False) | _QWEN),
}
"""SmolLM2-135M, Qwen2.5-Coder-1.5B and Qwen2.5-Coder-7B, from their published configs."""
GOALS = {"1.5B": 2.0, "7B": 1.3}
"""Of a forward's time over that of its bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--shapes", help="of 135M, 1.5B, 7B and tiny, with commas between; the "
                        "first is compared in fp32, too (135M,1.5B,7B; tiny on a CPU)")  # fmt: skip
    parser.add_argument("--tokens", type=int, help=f"of each text: {TOKENS}, {TOKENS_ON_CPU} on "
                        "a CPU")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of weights, prompts and drafts")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Check and measure; 1 where a text is another than that of plain decoding alone. Raises
    BenchError."""
    from accel.models.torch_registry import device_of
    from tests.benchmarks import report

    started, device = time.perf_counter(), device_of(args.device)
    names = (args.shapes or ("tiny" if device.type == "cpu" else "135M,1.5B,7B")).split(",")
    tokens = args.tokens or (TOKENS_ON_CPU if device.type == "cpu" else TOKENS)
    counts = CLIENTS_ON_CPU if device.type == "cpu" else CLIENTS
    if unknown := set(names) - set(SHAPES):
        raise BenchError(f"no shape {sorted(unknown)[0]!r}: give --shapes of {', '.join(SHAPES)}")
    bandwidth = copy_bandwidth(device)
    shapes: dict[str, dict[str, Any]] = {}
    for name, dtype in [(names[0], "fp32"), *((name, "bf16") for name in names)]:
        model, weight_bytes = random_model(name, dtype, device, args.seed)
        read_s = (weight_bytes + _context(model) * model.pool.token_bytes) / bandwidth
        shapes[f"{name} {dtype}"] = {
            "notice": model.notice,
            "differing": differing_texts(model, tokens, args.seed),
            "host_ms": host_ms(model),
            **{f"rows_{rows}": ratio_to_bytes(model, rows, read_s) for rows in ROWS},
            **{
                f"{kind}_{count}": tokens_per_s(
                    model, count, tokens, args.seed, drafted=kind == "drafted"
                )
                for kind in ("plain", "drafted")
                for count in counts
            },
            "goal": GOALS.get(name),
            "bytes_ms": 1e3 * read_s,
            "since_start_s": time.perf_counter() - started,
        }  # fmt: skip
        del model
    document = {
        "gpu-check": shapes,
        "device": _name(device),
        "copy_gb_per_s": bandwidth / 1e9,
        "seconds": time.perf_counter() - started,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    columns = {"differing": "texts that differ", "bytes_ms": "ms for the bytes",
               **{f"rows_{rows}": f"x bytes, {rows} rows" for rows in ROWS}, "goal": "goal",
               "host_ms": "host ms, 16 requests"}  # fmt: skip
    clients = {f"plain_{count}": f"{count}" for count in counts}
    clients |= {f"drafted_{count}": f"{count} drafted" for count in counts}
    copied = f"{_name(device)}, {bandwidth / 1e9:.0f} GB/s of a copy"
    tables = [
        report.table(f"forwards, {copied}", shapes, columns, "shape"),
        report.table("tokens/s by clients", shapes, clients, "shape"),
    ]
    report.publish(document, args.json, tables)
    for name, found in shapes.items():
        if found["notice"]:
            print(f"{name}: {found['notice']}")
    return int(any(found["differing"] for found in shapes.values()))


def _name(device: torch.device) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _synchronise(device: torch.device) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes a second that a copy within the device's memory reads and writes."""
    import torch

    size = COPIED_BYTES if device.type == "cuda" else COPIED_BYTES >> 4
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target, least = torch.empty_like(source), np.inf
    for _ in range(8):
        _synchronise(device)
        started = time.perf_counter()
        target.copy_(source)
        _synchronise(device)
        least = min(least, time.perf_counter() - started)
    return 2 * size / least


def random_model(name: str, dtype: str, device: torch.device, seed: int) -> tuple[PooledLlama, int]:
    """A model of a shape whose texts do not repeat: its matrices keep the size of what they are
    multiplied with; and the bytes of these."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.initialization import no_init_weights

    from accel.models.cuda.pooled_llama import PooledLlama
    from accel.models.torch_names import DTYPES

    kind, sizes = SHAPES[name]
    config = AutoConfig.for_model(kind, **sizes)
    with no_init_weights(), torch.device(device):
        module: Any = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    module.requires_grad_(False).eval()
    generator = torch.Generator(device).manual_seed(seed)
    for parameter in module.parameters():
        if parameter.dim() == 1:
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, parameter.shape[-1] ** -0.5, generator=generator)
    if sizes["tie_word_embeddings"]:
        module.tie_weights()
    for bias in (each for each_name, each in module.named_parameters() if "bias" in each_name):
        bias.zero_()
    read = [each for each in module.parameters() if each.dim() > 1]
    if not sizes["tie_word_embeddings"]:
        read = [each for each in read if each is not module.get_input_embeddings().weight]
    weight_bytes = sum(each.numel() * each.element_size() for each in read)
    model = PooledLlama.from_module(module)
    assert isinstance(model, PooledLlama), "the shapes are all built like Llama"
    return model, weight_bytes


@dataclass(eq=False)
class RequestStream:
    """One text: a prompt, what is written behind it, and drafts of what is known to come."""

    model: PooledLlama
    prompt: NDArray[np.int32]
    answer: list[int]
    cache: Cache = field(init=False)
    text: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = self.model.new_cache(len(self.prompt))

    def batch(self, nodes: int, random: np.random.Generator) -> ForwardBatch:
        """The next rows: a pending token, and ``nodes`` drafted ones, right as often as said."""
        from accel.draft_tree import DraftTree, Source
        from accel.models.batch import tree_batch

        pending = np.array(self.text[-1:] or self.prompt[-1:], np.int32)
        tokens = np.array(self.answer[len(self.text) :][:nodes], np.int32)
        wrong = random.random(len(tokens)) > ACCEPTANCE
        tree = DraftTree.chain(np.where(wrong, (tokens + 1) % 256, tokens), Source.MODEL)
        # Every third node leaves the chain, with the token that it was drafted for.
        for node in range(2, len(tokens), 3):
            tree.parents[node] = random.integers(-1, node)
        return tree_batch(pending, tree)

    def commit(self, batch: ForwardBatch, likeliest: Sequence[int]) -> None:
        """Follow the likeliest tokens through the tree."""
        row, path, children = (
            0,
            [0],
            list(zip(batch.parents.tolist(), batch.tokens.tolist(), strict=True)),
        )
        while True:
            token = likeliest[row]
            self.text.append(token)
            if (row, token) not in children:
                break
            row = children.index((row, token))
            path.append(row)
        self.cache.commit(path)


def _write(clients: list[RequestStream], count: int, nodes: int, seed: int) -> float:
    """Have all clients write ``count`` tokens together, with ``nodes`` drafted rows each; seconds
    behind the prompts."""
    from accel.models.batch import chain_batch

    model, random = clients[0].model, np.random.default_rng(seed)
    prompts = [chain_batch(each.prompt[:-1], len(each.prompt) - 1) for each in clients]
    list(model.forward_all(prompts, [client.cache for client in clients]))
    for client in clients:
        client.cache.commit(range(len(client.prompt) - 1))
    _synchronise(model.pool.layers[0].device)
    started = time.perf_counter()
    while under_way := [each for each in clients if len(each.text) < count]:
        batches = [client.batch(nodes, random) for client in under_way]
        found = model.forward_all(batches, [client.cache for client in under_way])
        for client, batch, logits in zip(under_way, batches, found, strict=True):
            client.commit(batch, logits.argmax())
    return time.perf_counter() - started


def _clients(
    model: PooledLlama, lengths: list[int], seed: int, answers: list[list[int]] | None = None
) -> list[RequestStream]:
    """With random prompts of so many tokens."""
    random = np.random.default_rng(seed)
    prompts = [random.integers(0, 256, length).astype(np.int32) for length in lengths]
    known = answers or [[] for _ in prompts]
    return [RequestStream(model, *each) for each in zip(prompts, known, strict=True)]


def differing_texts(model: PooledLlama, tokens: int, seed: int) -> int:
    """How many of 16 texts are others with drafts, or among others, than by plain decoding
    alone."""
    lengths = np.random.default_rng(seed).integers(8, 10 * tokens, 16).tolist()
    plain = _clients(model, lengths, seed)
    for client in plain:
        _write([client], tokens, 0, seed)
    answers = [client.text[:tokens] for client in plain]
    drafted, together, both = (_clients(model, lengths, seed, answers) for _ in range(3))
    for client in drafted:
        _write([client], tokens, 24, seed)
    _write(together, tokens, 0, seed)
    _write(both, tokens, 7, seed)
    found = zip(answers, drafted, together, both, strict=True)
    return sum(any(each.text[:tokens] != answer for each in others) for answer, *others in found)


def tokens_per_s(
    model: PooledLlama, count: int, tokens: int, seed: int, *, drafted: bool = False
) -> float:
    """Tokens a second of ``count`` clients together, behind prompts of ten times as many; with
    drafts the rows of a narrow forward are divided among them."""
    from accel.models.cuda.pooled_llama import NARROW

    lengths = [10 * tokens] * count
    clients, nodes = _clients(model, lengths, seed), 0
    if drafted:
        _write(clients, tokens, 0, seed)
        answers, nodes = [client.text[:tokens] for client in clients], NARROW // count - 1
        clients = _clients(model, lengths, seed, answers)
    seconds = _write(clients, tokens, nodes, seed)
    return sum(len(client.text) for client in clients) / seconds


def _context(model: PooledLlama) -> int:
    return min(CONTEXT, model.max_positions // 2)


def ratio_to_bytes(model: PooledLlama, rows: int, read_s: float) -> float:
    """Median time of a forward of one request's rows over that of its bytes: of matrices, and of
    keys and values behind CONTEXT tokens."""
    from accel.draft_tree import DraftTree, Source
    from accel.models.batch import tree_batch

    cache = model.new_cache(CONTEXT)
    cache.pretend(_context(model))
    tree = DraftTree.chain(np.arange(1, rows, dtype=np.int32), Source.MODEL)
    tree.parents = (np.arange(rows - 1, dtype=np.int32) - 2).clip(-1)
    batch, times = tree_batch(np.zeros(1, np.int32), tree), list[float]()
    for _ in range(TIMES if model.device == "cuda" else 2):
        started = time.perf_counter()
        model.forward(batch, [cache]).argmax()
        times.append(time.perf_counter() - started)
    return float(np.median(times)) / read_s


def host_ms(model: PooledLlama) -> float:
    """Median milliseconds of the processor for the plan of a forward of 16 requests."""
    from accel.models.batch import chain_batch
    from accel.models.cuda.kv_pool import PooledCache
    from accel.models.cuda.pooled_llama import joined

    caches = [PooledCache(model.pool) for _ in range(16)]
    for cache in caches:
        cache.pretend(min(_context(model), model.max_positions // 16))
        cache.reserve(4)
    batches = [chain_batch(np.zeros(4, np.int32), 0) for _ in caches]
    pooled, times = list(zip(batches, caches, strict=True)), list[float]()
    for _ in range(TIMES):
        started = time.perf_counter()
        model.narrow.plan.fill(joined(pooled), 0, 64)
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times))
