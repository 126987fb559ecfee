"""Names of the image labels that reprobuild sets."""

LABEL = "dev.reprobuild."
"""Their prefix."""
