"""What runs in the daemon: the editors' documents, suggestions, edits and next edits."""
