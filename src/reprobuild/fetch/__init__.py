"""Download the files of a lock, verify their hashes, and store them by hash."""
