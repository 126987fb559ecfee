"""Container registries: images are read from them and pushed to them."""
