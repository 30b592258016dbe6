"""Edit with instruction: hunks, code actions, provider."""
