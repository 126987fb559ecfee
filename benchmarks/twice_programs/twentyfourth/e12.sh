#!/bin/bash
# Simulation of a small Lennard-Jones fluid: minimisation, heating, production.
#
# Writes the parameter files, prepares each stage from the result of the one
# before, runs it and collects the energies and temperatures of the stages.
#
# Modelled on: https://github.com/macrocosm-os/mainframe/issues/73
set -eu

here=$(dirname "$0")
bin="$here/e12_pkg"
python=${PYTHON:-python}

cat > em.mdp <<'MDP'
integrator = steep      ; steepest descent
nsteps     = 120
MDP

cat > nvt.mdp <<'MDP'
integrator = md
dt         = 0.004
nsteps     = 500
gen_vel    = yes        ; velocities for the start
gen_temp   = 1.1
tau_t      = 0.4
ref_t      = 1.1
MDP

cat > prod.mdp <<'MDP'
integrator = md
dt         = 0.004
nsteps     = 700
gen_vel    = no
tau_t      = 2.0
ref_t      = 1.1
MDP

stage() {
    # stage NAME STRUCTURE
    echo "== $1" >&2
    date >&2
    "$python" "$bin/grompp.py" "$1.mdp" "$2" "$1.tpr"
    "$python" "$bin/mdrun.py" "$1.tpr" "$1"
}

stage em new
stage nvt em.gro
stage prod nvt.gro

awk '{ e += $2; t += $3 } END { printf "production: %d frames, energy %.5f, temperature %.5f\n", NR, e / NR, t / NR }' prod.xvg
for name in em nvt prod; do
    tail -n 1 "$name.xvg" | sed "s/^/$name last /"
done > last.txt
cat last.txt
