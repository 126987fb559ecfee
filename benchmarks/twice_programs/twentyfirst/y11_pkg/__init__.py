"""Virtual quakes."""
