"""A small hyperparameter search: search space, trainable and runner."""
