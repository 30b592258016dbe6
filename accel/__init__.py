"""Draft-and-verify decoding of causal language models: draft, verify, commit."""
