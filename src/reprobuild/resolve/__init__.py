"""Request to lock: every package by name, version, address, size and hash."""
