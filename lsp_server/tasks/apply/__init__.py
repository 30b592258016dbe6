"""What a coding agent wrote as a snippet, put into a file."""
