"""Build the layers, manifest and configuration of an image from the store."""
