"""Receipts: the inputs and results of a run in a small file, and what has changed since."""
