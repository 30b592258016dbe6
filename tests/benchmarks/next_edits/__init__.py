"""Next edits: replay of commits, and what the model says of their windows."""
