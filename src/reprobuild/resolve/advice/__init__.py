"""What a user may change in a request that nothing fits: each module has ``advise(case)``."""
