"""Inline completion: context, cache, filter, provider."""
