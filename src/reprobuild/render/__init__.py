"""Render a lock to a Dockerfile, its context and the image configuration. Pure."""
