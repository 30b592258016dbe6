"""Tells whether the machine runs on its battery."""

from __future__ import annotations

from pathlib import Path

import psutil

from operating_system.system import is_linux

SUPPLIES = Path("/sys/class/power_supply")


def on_battery(supplies: Path = SUPPLIES) -> bool:
    """Return whether a battery alone feeds the machine; on Linux by what ``supplies`` lists."""
    if not is_linux():
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        return battery is not None and battery.power_plugged is False
    discharging = False
    for supply in supplies.glob("*"):
        # The battery of a mouse or a keyboard has the scope of a device.
        if _read(supply / "scope") == "Device":
            continue
        if _read(supply / "type") != "Battery" and _read(supply / "online") == "1":
            return False
        discharging |= _read(supply / "status") == "Discharging"
    return discharging


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""
