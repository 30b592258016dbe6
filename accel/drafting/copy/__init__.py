"""Drafts of edits from the code that is edited."""
