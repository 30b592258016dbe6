"""Differences between Linux, macOS and Windows: every other module asks here."""
