"""SIR-F scenario analysis."""
