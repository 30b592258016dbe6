"""A person who types through the real server."""
