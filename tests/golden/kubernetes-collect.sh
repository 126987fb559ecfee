#!/bin/sh
# Waits for the Job reprobuild-torch-cu121, writes a report of each run of each node, and compares the nodes.
# Arguments are for kubectl, such as --namespace=team.
set -eu
until kubectl "$@" get job reprobuild-torch-cu121 --output 'jsonpath={.status.conditions[?(@.status=="True")].type}' |
    grep -E 'Complete|Failed'; do
    sleep 5
done
mkdir -p reprobuild-torch-cu121.reports
rm -f reprobuild-torch-cu121.reports/*.json
kubectl "$@" get pods --selector job-name=reprobuild-torch-cu121 --field-selector status.phase=Succeeded \
    --output 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}' |
    while read -r pod node; do
        kubectl "$@" logs "$pod" < /dev/null > reprobuild-torch-cu121.reports/log
        number=1
        for run in '' ' busy 1' ' busy 2'; do
            sed -n "${number}p" reprobuild-torch-cu121.reports/log > "reprobuild-torch-cu121.reports/$node$run.json"
            number=$((number + 1))
        done
    done
rm -f reprobuild-torch-cu121.reports/log
# What has no report, and why: a pod that waits for a node, or whose test broke off.
kubectl "$@" get pods --selector job-name=reprobuild-torch-cu121 --field-selector status.phase!=Succeeded \
    --output wide >&2
exec reprobuild selftest --fleet reprobuild-torch-cu121.reports/*.json --output reprobuild-torch-cu121.html
