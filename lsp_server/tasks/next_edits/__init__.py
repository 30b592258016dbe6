"""What the engine process knows of next edits: in which format a model is asked for them."""
