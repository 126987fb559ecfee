"""Patient timeline modelling."""
