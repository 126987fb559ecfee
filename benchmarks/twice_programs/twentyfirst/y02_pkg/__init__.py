"""Atomic convolutions for protein-ligand affinity, in a small edition.

Radial symmetry functions over atom neighbourhoods feed one small tower per
molecule; the affinity is read off the difference complex - protein - ligand.
See y02.sh for the steps.

Modelled on: https://github.com/deepchem/deepchem/issues/5092
"""
SEED = 123
