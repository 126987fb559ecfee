"""A team's own files, turned into a request."""
