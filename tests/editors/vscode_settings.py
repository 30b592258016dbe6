"""How the browser and VS Code are started for tests."""

from __future__ import annotations

# Chromium that reaches nothing but this machine.
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]

# No telemetry, no updates, and nothing on the screen that these tests are not about.
SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.enableExperiments": False,
    "workbench.tips.enabled": False,
    "chat.disableAIFeatures": True,
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "files.hotExit": "off",
    "git.enabled": False,
    "terminal.integrated.gpuAcceleration": "off",
    "diffEditor.useInlineViewWhenSpaceIsLimited": False,
    "editor.minimap.enabled": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "editor.autoClosingBrackets": "never",
    "editor.autoClosingQuotes": "never",
    # What a suggestion is, the text of its own file says alone.
    "redraft.context.crossFile": False,
}

AS_INSTALLED = {
    "editor.quickSuggestions": {"other": "on", "comments": "off", "strings": "off"},
    "editor.suggestOnTriggerCharacters": True,
    "editor.autoClosingBrackets": "languageDefined",
    "editor.autoClosingQuotes": "languageDefined",
    "redraft.context.crossFile": True,
}
"""What the settings above switch off, as VS Code has it."""

# Of the machine with the server's side, in a browser. What PATH is there, the user's shell says,
# and a busy machine takes its time.
MACHINE_SETTINGS = {"application.shellEnvironmentResolutionTimeout": 120}
