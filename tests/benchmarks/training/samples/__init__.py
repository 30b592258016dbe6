"""Makers of training samples: from files, from functions and from commits."""
