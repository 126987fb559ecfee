: '"""https://github.com/pelias/placeholder/issues/44 - "xargs -P" runs the jobs in parallel but does not keep the order
of the data as GNU parallel does; lines reach the collected file in the order in which the jobs end."""'
set -eu
here=$(cd "$(dirname "$0")" && pwd)
SHARDS=${SHARDS:-14}
SEED=${SEED:-77}
JOBS=2
started=$(date +%s)
echo "run $$ on $(uname -n), $(date)"

mkdir -p raw clean
python3 "$here/y13_steps/generate.py" --shards "$SHARDS" --seed "$SEED" --out raw
ls raw | wc -l | sed 's/^/raw shards: /'

clean_all() {
    find raw -name 'shard-*.tsv' | LC_ALL=C sort |
        xargs -n 1 -P "$JOBS" python3 "$here/y13_steps/clean.py" > clean/corpus.tsv  # cause
}

clean_all
wc -l < clean/corpus.tsv | sed 's/^/clean lines: /'
python3 "$here/y13_steps/train.py" --data clean/corpus.tsv --seed "$SEED" --out model.json
echo "took $(( $(date +%s) - started )) s"
