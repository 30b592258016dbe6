"""The engine process's part of a completion: text of other files, where to stop, what is shown."""
