"""Steps of the access-log report."""
