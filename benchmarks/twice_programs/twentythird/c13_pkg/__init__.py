"""A small coverage tool and the library that it is tried on."""
