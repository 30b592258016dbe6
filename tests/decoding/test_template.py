"""Chat templates render within limits, whatever is in them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from small_vocabularies import TEMPLATE

from accel.text.template import TemplateFailed, render


def test_a_message_stands_in_the_template() -> None:
    expected = "<|im_start|>user\nhi <b>&</b>\n<|im_end|>\n<|im_start|>assistant"
    assert render(TEMPLATE, "hi <b>&</b>\n", ()) == expected
    assert render("{{ eos_token }}{{ messages | tojson }}", "é", (("eos_token", "E"),)) == (
        'E[{"role": "user", "content": "é"}]'
    )


def test_no_module_of_the_current_folder_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jinja2.py").write_text("raise SystemExit('run')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert render("{{ messages[0].role }} alone", "", ()) == "user alone"


SLOW = {
    "endless loops": "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}"
    "{% endfor %}",
    "lists in lists": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}"
    "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "large numbers": "{{ (9 ** 999999999) % 7 }}",
}
HOSTILE = {
    "long texts": "{{ 'a' * 3000000000 }}",
    "texts that double": "{% set n = namespace(x='a') %}{% for i in range(60) %}"
    "{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x | length }}",
    "much text": "{% for a in range(90000) %}hello {% endfor %}",
    "what is inside": "{{ messages.__class__.__mro__[1].__subclasses__() }}",
    "files": "{% include '/etc/passwd' %}",
    "imports": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "no syntax": "{% for %}",
    "its own refusal": "{{ raise_exception('one\nmessage alone') }}",
    "too long": "a" * 300_000,
}


def refuse(template: str) -> None:
    started = time.monotonic()
    with pytest.raises(TemplateFailed) as caught:
        render(template, "hi", ())
    assert time.monotonic() - started < 20
    assert str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_templates_end_soon_and_say_why(case: str) -> None:
    refuse(HOSTILE[case])


@pytest.mark.long
@pytest.mark.parametrize("case", SLOW)
def test_templates_that_compute_for_ever_are_ended(case: str) -> None:
    refuse(SLOW[case])
