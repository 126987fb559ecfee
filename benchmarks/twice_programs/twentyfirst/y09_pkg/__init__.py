"""Terrain analysis."""
