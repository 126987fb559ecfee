"""Lock to store: what is locked is downloaded, held against its hash and kept under it."""
