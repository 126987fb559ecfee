"""Bayesian demand forecasting for a chain of stores."""
