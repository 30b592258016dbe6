"""Drafts from texts that are known: prompt, files of the workspace, common code."""
