"""What the files of a model say: GGUF, safetensors, folders. No forward is computed here."""
