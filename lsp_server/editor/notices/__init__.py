"""What the user is told: the state of the server, questions and progress."""
