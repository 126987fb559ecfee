"""Augmentation toolkit."""
