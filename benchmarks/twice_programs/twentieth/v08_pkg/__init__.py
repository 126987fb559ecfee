"""Simulation of a sharded key/value block store for language model serving."""
