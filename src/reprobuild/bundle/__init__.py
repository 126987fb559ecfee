"""Bundles: all inputs of some locks, reprobuild and its dependencies in one archive."""
