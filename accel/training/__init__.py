"""Training of the embedded model: corpus, tokenizer, units, optimiser, quality."""
