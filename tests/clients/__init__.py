"""Third-party clients, installed and driven as their users would: ``python -m tests.clients FOLDER``."""
