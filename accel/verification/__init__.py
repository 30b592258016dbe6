"""Which drafted tokens are the model's own."""
