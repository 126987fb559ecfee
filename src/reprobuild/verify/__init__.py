"""Is an image what it says: its files against its lock, or against another image."""
