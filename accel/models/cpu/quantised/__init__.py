"""Matrices of quantised weights, and their products with rows of activations in whole numbers."""
