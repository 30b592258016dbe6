"""The forward of decoders like Llama on CUDA: one pool of keys and values, graphs of two widths."""
