"""Steps of the incident search."""
