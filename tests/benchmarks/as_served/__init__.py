"""What a person gets from a server started without an option, beside what its model can do."""
