"""Store → layers, and the manifest and configuration of an image."""
