"""Files of a model: GGUF, safetensors, folders. No forward is computed here."""
