"""The request file and the determinism settings that it chooses. Pure."""
