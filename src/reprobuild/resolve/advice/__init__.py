"""Advice for a request that cannot be resolved: each module has ``advise(case)``."""
