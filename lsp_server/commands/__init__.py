"""The command line: every command, the demo, and how fast a model is here."""
