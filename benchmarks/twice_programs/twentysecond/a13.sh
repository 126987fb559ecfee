#!/bin/bash
# hicsweep: simulate a small metagenome with Hi-C reads and cluster its contigs.
#
#   1. community.py   genomes and abundances of a community
#   2. sim_forward.py Hi-C read pairs from the community
#   3. contacts.py    fragment contact map from the pairs
#   4. cluster.py     clusters of fragments, compared with the truth
#
# Modelled on: https://github.com/cerebis/meta-sweeper/issues/1
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pkg="$here/a13_pkg"
seed=1234

for abundance in even skewed; do
    echo "== community: $abundance"
    python "$pkg/community.py" "$abundance" "$seed" "community_$abundance.json"
    python "$pkg/sim_forward.py" "community_$abundance.json" "$seed" 6000 "reads_$abundance.tsv"
    python "$pkg/contacts.py" "community_$abundance.json" "reads_$abundance.tsv" "contacts_$abundance.npy"
    python "$pkg/cluster.py" "community_$abundance.json" "contacts_$abundance.npy" "clusters_$abundance.csv"
done
wc -l reads_*.tsv
