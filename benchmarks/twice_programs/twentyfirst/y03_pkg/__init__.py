"""Ticket similarity."""
