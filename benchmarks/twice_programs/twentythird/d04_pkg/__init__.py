"""Netlist model and triplication passes."""
