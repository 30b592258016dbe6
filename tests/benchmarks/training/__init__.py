"""What drafters and draft models learn, and SDSAT's adaptive tokens."""
