"""The names of an image's labels that are reprobuild's own."""

LABEL = "dev.reprobuild."
"""Their prefix."""
