"""From a short request to a container image that has proven that the same seed gives the same bits."""

__version__ = "0.1.0"
