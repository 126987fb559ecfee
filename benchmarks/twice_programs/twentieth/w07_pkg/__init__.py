"""Graph machine learning helpers: graph, splits, samplers, generators, model."""
