"""The models on this machine: where they lie, what they can do, which of them is chosen."""
