"""Hidden characters are found, unless they stood there before."""

from __future__ import annotations

import pytest

from lsp_server.text.documents.invisible_characters import first_hidden, hidden_warning

BIDI = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]


@pytest.mark.parametrize("code", [*BIDI, 0x200B, 0x200E, 0x2060, 0xFEFF, 0xE0041])
def test_each_is_found_and_named(code: int) -> None:
    text = f"a\nb{chr(code)}c"
    assert first_hidden(text, "a\nb") == 3
    assert first_hidden(text, text) is None
    assert hidden_warning("a", text).startswith("line 2 ")
    assert f"U+{code:04X}" in hidden_warning("a", text)


@pytest.mark.parametrize("text", ["plain", "é𝄞漢字", "e\u0301", "👩\u200d💻", "a\u00a0b", "\t\r\n"])
def test_ordinary_text_is_not(text: str) -> None:
    assert first_hidden(text, "") is None
    assert hidden_warning("", text) == ""
