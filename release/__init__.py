"""Builds what is released, and tries it in empty environments. It is no part of an installation."""
