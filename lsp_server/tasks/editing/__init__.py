"""The engine process's part of an edit: what the model is shown, and how its answer is read."""
