"""On battery or not, by what Linux lists, and what is computed ahead then."""

from __future__ import annotations

from pathlib import Path

import pytest
from text_cases import data_cases

from lsp_server.shared import power
from operating_system import machine as system_power

BATTERY = {"type": "Battery", "status": "Discharging"}
MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}
CASES = [
    ({}, False),
    ({"BAT0": BATTERY}, True),
    ({"BAT0": BATTERY, "AC": {"type": "Mains", "online": "0"}}, True),
    ({"BAT0": BATTERY, "ADP1": {"type": "Mains", "online": "1"}}, False),
    ({"BAT0": {"type": "Battery", "status": "Charging"}}, False),
    ({"BAT0": {"type": "Battery", "status": "Full"}, "mouse": MOUSE}, False),
    ({"BAT1": BATTERY, "usb": {"type": "USB", "online": "1"}}, False),
]


@pytest.mark.parametrize(("supplies", "expected"), CASES)
def test_a_battery_alone_feeds_the_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    supplies: dict[str, dict[str, str]],
    expected: bool,
) -> None:
    monkeypatch.setattr(system_power, "is_linux", lambda: True)
    for name, fields in supplies.items():
        (tmp_path / name).mkdir()
        for field, value in fields.items():
            (tmp_path / name / field).write_text(f"{value}\n")
    assert system_power.on_battery(tmp_path) is expected


@data_cases()
def test_what_a_person_wants_goes_before_the_battery(
    monkeypatch: pytest.MonkeyPatch, setting: str, battery: bool, saved: str
) -> None:
    power._was_on_battery.cache_clear()
    monkeypatch.setattr(power, "on_battery", lambda: battery)
    assert power.saving_reason(setting) == saved
    power._was_on_battery.cache_clear()
