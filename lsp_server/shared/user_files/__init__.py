"""The user's folders, and private files in them."""
