"""Next edits: what follows from the edits that the user just made, proposed where it belongs."""
