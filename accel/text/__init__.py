"""From text to token ids and back: tokenizer, prompts of every kind, token healing."""
