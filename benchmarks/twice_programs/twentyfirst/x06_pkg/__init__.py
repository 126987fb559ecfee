"""Two-view geometry for the strip reconstruction."""
