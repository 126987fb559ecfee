"""Implicit-feedback factor models."""
