"""Drafting rules as their papers publish them."""
