"""Nonparametric independence tests."""
