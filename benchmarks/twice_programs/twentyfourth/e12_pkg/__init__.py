"""Steps of a small molecular dynamics run."""
