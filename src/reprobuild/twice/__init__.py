"""Runs a user's own program twice and says whether it repeats; if not, where it parts and at which line."""
