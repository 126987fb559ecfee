"""Training recipe for the glyph classifier."""
