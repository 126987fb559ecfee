"""Builds images, runs programs in them, and keeps them: the embedded engine, Docker and Podman."""
