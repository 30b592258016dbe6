"""Open documents: their text, where they are, and which of them hold secrets."""
