"""What is copied into the image. Each file stands alone: standard library, and torch and numpy where they are there."""
