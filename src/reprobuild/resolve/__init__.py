"""request → lock."""
