"""Where drafts come from: one source a file."""
