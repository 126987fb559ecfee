"""Convert a team's own files into a request."""
