"""Steps of the host filter pipeline."""
