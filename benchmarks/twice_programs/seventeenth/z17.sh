#!/bin/sh
# Cohort of first knee procedures from a synthetic claims database, with a
# baseline covariate table and an outcome rate per procedure group.
#
# Modelled on https://github.com/OHDSI/WebAPI/issues/139
set -eu

here=$(cd "$(dirname "$0")" && pwd)/z17_steps
work=cohort_build
mkdir -p "$work/extract" "$work/results"

stamp() { printf '%s  %s\n' "$(date '+%H:%M:%S')" "$*"; }

stamp "working in $(pwd)/$work"
stamp "extract"
python "$here/extract.py" --out "$work/extract" --persons 22000 --seed 139

stamp "load"
python "$here/run_sql.py" --db "$work/cdm.duckdb" --var extract="$work/extract" \
    "$here/01_load.sql"

stamp "cohort"
python "$here/run_sql.py" --db "$work/cdm.duckdb" "$here/02_first_event.sql" \
    "$here/03_cohort.sql"

stamp "covariates and rates"
python "$here/run_sql.py" --db "$work/cdm.duckdb" --var results="$work/results" \
    "$here/04_rates.sql"
python "$here/summarise.py" --results "$work/results"

rm -f "$work/cdm.duckdb"
stamp "done: $(ls "$work/results" | wc -l) result files"
