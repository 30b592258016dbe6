"""Acceptance of drafted tokens, and sampling."""
