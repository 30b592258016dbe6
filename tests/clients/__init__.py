"""Third-party clients, driven as their users would: ``python -m tests.clients FOLDER``."""
