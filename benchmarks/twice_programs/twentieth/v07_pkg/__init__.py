"""Quantification of proteoforms from label-free runs."""
