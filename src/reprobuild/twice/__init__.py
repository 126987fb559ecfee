"""Run a user's own program twice, and find the first difference and its line; receipts of runs."""
