"""The user's folders, and files in them that nobody else may read."""
