"""The browser that shows VS Code."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from vscode_settings import CHROMIUM


class Browser:
    """Chromium with a fresh profile. ``outside`` collects every address but this machine's."""

    def __init__(self, folder: Path) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self.context = self._playwright.chromium.launch_persistent_context(
            str(folder),
            executable_path=shutil.which("chromium"),
            headless=True,
            args=CHROMIUM,
            viewport={"width": 1280, "height": 800},
        )
        self.outside: set[str] = set()
        self.context.on("request", self._seen)

    def _seen(self, request: Any) -> None:
        if "//127.0.0.1" not in request.url and not request.url.startswith(("data:", "blob:")):
            self.outside.add(request.url)

    def close(self) -> None:
        """End Chromium."""
        self.context.close()
        self._playwright.stop()
