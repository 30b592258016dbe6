"""Syntax trees of texts by the language that the editor names: comments, strings, identifiers."""
