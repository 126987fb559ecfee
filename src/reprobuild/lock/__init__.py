"""The lock file: its model, reading, comparing and exporting it. Pure."""
