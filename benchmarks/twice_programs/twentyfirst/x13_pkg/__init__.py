"""Agent-based model of a transaction fee market."""
