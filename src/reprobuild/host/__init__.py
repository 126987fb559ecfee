"""This machine: folders, processes, namespaces, sandbox and terminal."""
