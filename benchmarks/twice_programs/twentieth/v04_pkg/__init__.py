"""Genetic variable selection."""
