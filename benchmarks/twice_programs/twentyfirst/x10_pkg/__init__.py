"""Configuration verifier."""
