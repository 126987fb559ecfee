"""What was proven of an image, as signed statements about its digest, and whether others' statements hold."""
