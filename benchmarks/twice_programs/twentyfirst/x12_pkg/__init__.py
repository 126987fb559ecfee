"""Sequential sampling models."""
