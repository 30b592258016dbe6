"""Options that several commands of the laboratory take."""

from __future__ import annotations

import argparse

from lsp_server.commands.cli.output import add_json_argument
from tests.benchmarks.dtypes import CHOICES, DTYPES, FASTEST, KV_TYPES


def add_common_code_argument(parser: argparse.ArgumentParser) -> None:
    """Which code every repository may draft from."""
    parser.add_argument(
        "--common",
        metavar="DIR|none",
        help="common code: a folder, none, or by default the libraries of this environment",
    )


def add_case_arguments(parser: argparse.ArgumentParser, *, max_nodes: int) -> None:
    """How many cases, by how large drafts, and where the results go."""
    parser.add_argument("--limit", type=int, help="take this many cases, evenly spread")
    parser.add_argument(
        "--max-nodes", type=int, default=max_nodes, help="nodes of a draft tree at most"
    )
    add_common_code_argument(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    add_json_argument(parser)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model runs, and how."""
    parser.add_argument(
        "--model", metavar="PATH", help="model folder or GGUF file; else the chosen one"
    )
    parser.add_argument(
        "--dtype",
        choices=CHOICES,
        help="of weights and KV cache; fp32 where it is left out, of a GGUF file the weights as "
        "they are stored",
    )
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument(
        "--backend",
        choices=("auto", "own", "llama-cpp"),
        default="own",
        help="what computes a GGUF file in our engine",
    )
    parser.add_argument("--kv-type", choices=KV_TYPES, default="f16", help="of our KV cache")


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """How tokens are chosen, the same for all methods."""
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus of sampling")


def add_peer_arguments(parser: argparse.ArgumentParser) -> None:
    """What the methods of others take, and against what ours are compared."""
    parser.add_argument(
        "--hf-dtype",
        choices=(*DTYPES, FASTEST),
        help="of transformers' methods, where another than --dtype; fastest: found by timing",
    )
    parser.add_argument(
        "--no-hf",
        action="store_true",
        help="leave transformers out, its plain decoding too: much quicker, and speed-ups are then "
        "against our own plain decoding",
    )
    add_engine_argument(parser)
    parser.add_argument(
        "--skip", metavar="PEERS", default="", help="peers that may be missing or fail, by comma"
    )
    parser.add_argument(
        "--draft-model",
        metavar="DIR",
        help="smaller model of the same tokenizer, which drafts; else `draft` in its folder",
    )
    parser.add_argument(
        "--one-dtype",
        action="store_true",
        help="measure plain decoding in --dtype alone; speed-ups are then against that",
    )


def add_engine_argument(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Other engines on the same GGUF file."""
    parser.add_argument(
        "--peer",
        metavar="P1,P2,…",
        default=default,
        help="measure these engines on the same GGUF file by turns, too: llama-cpp, ik-llama-cpp, "
        "openvino; ik-llama-cpp-repacked lays weights out by rows together, openvino-f32 computes "
        "in that precision what is not quantised",
    )
