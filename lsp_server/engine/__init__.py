"""The engine: a process that holds the model, its scheduler, and the client that asks it."""
