"""What the project's page shows is what the log says and the list of models gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lsp_server.shared.errors import BenchError
from tests.benchmarks.page import chart, machines

PAGE = Path(__file__).parents[3] / "README.md"


def test_the_chart_is_drawn_from_figures_of_the_log() -> None:
    text = chart.drawn(chart.figures())
    assert chart.CHART.read_text("utf-8") == text
    words = [node.text for node in ElementTree.fromstring(text).iter() if node.text]
    for group in chart.figures():
        for name, value in group["bars"].items():
            assert name in words
            assert str(value) in words
    assert f"({chart.CHART.relative_to(PAGE.parent)})" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("change", ["figure", "line"])
def test_a_figure_that_the_log_does_not_have_is_refused(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = json.loads(chart.FIGURES.read_text("utf-8"))
    if change == "figure":
        groups[0]["bars"]["Redraft"] += 1
    else:
        groups[0]["logged"] += " and more"
    file = tmp_path / "speeds.json"
    file.write_text(json.dumps(groups), "utf-8")
    monkeypatch.setattr(chart, "FIGURES", file)
    with pytest.raises(BenchError, match=r"correct speeds\.json"):
        chart.figures()


def test_the_page_has_the_table_of_machines_as_it_is_computed() -> None:
    assert machines.table() in PAGE.read_text("utf-8")


def test_the_page_is_read_in_three_minutes() -> None:
    """At 240 words a minute, without code, tables and addresses."""
    left_out = r"```.*?```|^\|.*?$|`[^`]*`|\]\([^)]*\)"
    text = re.sub(left_out, "", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert len(text.split()) <= 3 * 240


def test_what_the_page_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE.read_text("utf-8"))
    assert [link for link in links if "://" not in link and not (PAGE.parent / link).exists()] == []
