"""The daemon's work for editors: documents, suggestions, edits and next edits."""
