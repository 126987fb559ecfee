"""What is copied into the image. Each file stands alone: standard library, and torch and numpy if there."""
