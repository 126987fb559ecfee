"""Spatial clustering of cells."""
