"""A team at work on its server."""
