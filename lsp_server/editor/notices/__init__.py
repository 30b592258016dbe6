"""Messages to the user: the state of the server, reasons, questions and progress."""
