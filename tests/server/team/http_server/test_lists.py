"""Lists of objects in a request are bounded, and refused before their entries are looked at."""

from __future__ import annotations

import pytest

from lsp_server.team.http_server.errors import RequestRefused
from lsp_server.team.http_server.fields import Fields


def test_a_list_of_objects_has_an_end() -> None:
    assert len(Fields({"messages": [{}] * 3}).objects("messages", 3)) == 3
    assert Fields({}).objects("messages", 3) == []
    for values in ([{}] * 4, [None] * 100_000):
        with pytest.raises(RequestRefused, match="messages may have at most 3 entries"):
            Fields({"messages": values}).objects("messages", 3)
    for wrong in ([{}, 1], {}, "ab", 7):
        with pytest.raises(RequestRefused, match=r"chat\.messages is a list of objects"):
            Fields({"messages": wrong}, "chat").objects("messages", 3)
