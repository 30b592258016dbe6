"""Snippets of coding agents, put into files: made of commits, mutated, applied, compared."""
