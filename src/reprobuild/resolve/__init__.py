"""Resolve a request to a lock: every package by name, version, address, size and hash."""
