"""What a user may change in a request that cannot be resolved: packages, torch, Python, pins, names."""
