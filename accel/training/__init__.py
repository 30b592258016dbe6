"""Training of draft models, adaptive tokens and what drafting learns."""
