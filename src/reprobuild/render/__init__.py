"""Lock to Dockerfile, context and image configuration. Pure."""
