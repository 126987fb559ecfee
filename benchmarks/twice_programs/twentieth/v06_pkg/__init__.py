"""Preparation of the campaign data set."""
