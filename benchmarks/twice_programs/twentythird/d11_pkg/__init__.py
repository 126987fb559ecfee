"""Steps of the code metrics report."""
