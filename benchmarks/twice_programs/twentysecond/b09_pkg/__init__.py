"""Steps of the low coverage study."""
