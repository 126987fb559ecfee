# https://github.com/mmstick/parallel/issues/12 : the output of parallel jobs is not idempotent, lines come in the order in which the jobs finish and not in the order of the input, so the merged file differs after every run.
set -e
HERE=$(cd "$(dirname "$0")" && pwd)
export HERE
CHUNKS=16
JOBS=2
SEED=11

say() { echo "$(date '+%T') $*"; }

prepare() {
    python "$HERE/e24_jobs/signals.py" --chunks "$CHUNKS" --out raw
    ls raw | LC_ALL=C sort > chunks.txt
}

extract() {
    rm -f features.csv
    echo "chunk,mean,std,peak,energy,label" > features.csv
    xargs -P "$JOBS" -n 1 python "$HERE/e24_jobs/features.py" < chunks.txt >> features.csv  # cause
    say "features: $(($(wc -l < features.csv) - 1)) rows"
}

check() {
    want=$(wc -l < chunks.txt)
    got=$(cut -d, -f1 features.csv | tail -n +2 | LC_ALL=C sort -u | wc -l)
    if [ "$want" -ne "$got" ]; then
        say "missing chunks"
        exit 1
    fi
}

started=$(date +%s)
say "host $(uname -n), shell $$"
prepare
extract
check
python "$HERE/e24_jobs/fit.py" --features features.csv --seed "$SEED" --out model.json
say "took $(($(date +%s) - started)) s"
