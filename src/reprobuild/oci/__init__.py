"""Files of the OCI formats: image store, archives, layers, manifests and configurations."""
