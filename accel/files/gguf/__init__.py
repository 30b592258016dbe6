"""Models in GGUF files: header, weights, tokenizer. Loads no torch but in ``module.py``."""
