"""Formats in which models are asked for next edits."""
