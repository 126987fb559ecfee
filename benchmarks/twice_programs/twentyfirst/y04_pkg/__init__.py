"""PrivBayes, small edition."""
