"""Build wheels from source archives in a sandbox; the same archive gives the same wheel."""
