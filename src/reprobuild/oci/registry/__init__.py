"""Container registries: read images from them and push images to them."""
