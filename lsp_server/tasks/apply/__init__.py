"""Snippets that a coding agent wrote, put into a file."""
