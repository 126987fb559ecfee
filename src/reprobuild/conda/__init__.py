"""Conda: conda-lock for its files (`condalock`), py-rattler for solving (`solver`) and linking (layers/)."""
