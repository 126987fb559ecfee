"""Signed statements about an image: what was tested and built, and whether others' statements suffice."""
