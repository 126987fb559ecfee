"""Source archives → wheels, built in a sandbox so that the same archive gives the same wheel."""
