"""Open documents: their text, where they stand, and which of them hold secrets."""
