"""Reading pipeline."""
