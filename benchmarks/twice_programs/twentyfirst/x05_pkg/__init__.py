"""A little Datalog engine."""
