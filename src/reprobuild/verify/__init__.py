"""Compare an image's files with its lock, or with another image; its signed evidence."""
