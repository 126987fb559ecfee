"""Kubernetes Job that runs the self-test on each node, and a script that collects the reports. Pure.

Sources: the API's reference for batch/v1 Job ("Indexed" completion) and core/v1 PodSpec; the Pod Security
Standards, whose profile "restricted" the pods keep to.
"""

from __future__ import annotations

import re
from typing import Any

from ..errors import RenderError
from ..lock.model import Lock
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX

MANIFESTS, COLLECT = "fleet.yaml", "collect.sh"
"""The files that are written."""

MOST_NODES = 5000
"""Kubernetes supports no more in a cluster."""

_NOBODY = 65534
_SECONDS = 3600
"""Time limit of the Job: for the wait for a node, the image's pull and the test."""

_BY_DIGEST = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+@sha256:[0-9a-f]{64}"
)

# No `$(`: kubelet takes it for a variable of its own. A report is one line of the log, since no text of JSON
# has a line break in it.
_SCRIPT = f"""\
battery() {{
    {SITE_PREFIX}/bin/python3 -I {OWN_FOLDER}/selftest.py --json --device {{device}} \\
        --time-limit 900 > "/tmp/$1" 2>> /dev/termination-log
    status=$?
    # A report was written, of an image that passed, failed, or could not tell.
    case $status in 0 | 1 | 3) return 0 ;; *) return "$status" ;; esac
}}
battery alone || exit
battery busy-1 &
battery busy-2 || exit
wait $! || exit
for run in alone busy-1 busy-2; do
    tr -d '\\n' < "/tmp/$run"
    echo
done
"""

_COLLECT = """\
#!/bin/sh
# Waits for the Job {name}, writes a report of each run of each node, and compares the nodes.
# Arguments are for kubectl, such as --namespace=team.
set -eu
until kubectl "$@" get job {name} --output 'jsonpath={{.status.conditions[?(@.status=="True")].type}}' |
    grep -E 'Complete|Failed'; do
    sleep 5
done
mkdir -p {name}.reports
rm -f {name}.reports/*.json
kubectl "$@" get pods --selector job-name={name} --field-selector status.phase=Succeeded \\
    --output 'jsonpath={{range .items[*]}}{{.metadata.name}} {{.spec.nodeName}}{{"\\n"}}{{end}}' |
    while read -r pod node; do
        kubectl "$@" logs "$pod" < /dev/null > {name}.reports/log
        number=1
        for run in '' ' busy 1' ' busy 2'; do
            sed -n "${{number}}p" {name}.reports/log > "{name}.reports/$node$run.json"
            number=$((number + 1))
        done
    done
rm -f {name}.reports/log
# What has no report, and why: a pod that waits for a node, or whose test broke off.
kubectl "$@" get pods --selector job-name={name} --field-selector status.phase!=Succeeded \\
    --output wide >&2
exec reprobuild selftest --fleet {name}.reports/*.json --output {name}.html
"""


def is_by_digest(image: str) -> bool:
    """Whether an image is named by its registry, its repository and its digest."""
    return bool(_BY_DIGEST.fullmatch(image))


def fleet_job(lock: Lock, image: str, nodes: int) -> dict[str, bytes]:
    """Return the files, by name: the manifests, and the script that gathers the reports.

    ``image`` is named by its digest. Raises `RenderError` for one that is not.
    """
    if not is_by_digest(image):
        raise RenderError(
            f"{image!r} does not name an image by its digest",
            hint="like registry.example/team/torch@sha256:…; `reprobuild push` prints the digest",
        )
    name = _name(lock)
    documents = [_network_policy(name), _job(lock, name, image, nodes)]
    text = "---\n".join(_dump(each) for each in documents)
    about = (
        f"# The self-test on each of {nodes} nodes, one pod a node. `kubectl apply -f {MANIFESTS}`,"
        f" then `sh {COLLECT}`.\n"
    )
    return {
        MANIFESTS: (about + text).encode(),
        COLLECT: _COLLECT.format(name=name).encode(),
    }


def _name(lock: Lock) -> str:
    """Return a name that a label may have (RFC 1123), the same for the same request."""
    plain = re.sub(r"[^a-z0-9]+", "-", lock.request.name.lower()).strip("-")
    return f"reprobuild-{plain}"[:50].rstrip("-")


def _network_policy(name: str) -> dict[str, Any]:
    """The self-test needs no network, and what a stranger's package does in it gets none."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "policyTypes": ["Ingress", "Egress"],
        },
    }


def _job(lock: Lock, name: str, image: str, nodes: int) -> dict[str, Any]:
    gpu = lock.request.cuda != "cpu"
    # As much as asked for: a node without room for it is no node to measure on.
    # Each of the two interpreters takes 2.3 GiB with CUDA's libraries (measured on an H100), and what is
    # written to the two folders in memory counts too.
    resources: dict[str, Any] = {"cpu": "2", "memory": "12Gi" if gpu else "6Gi"}
    if gpu:
        resources["nvidia.com/gpu"] = 1
    container = {
        "name": "selftest",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", _SCRIPT.replace("{device}", "cuda" if gpu else "cpu")],
        "workingDir": "/tmp",  # noqa: S108 -- in the container
        "resources": {"limits": resources, "requests": dict(resources)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
        ],
    }
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "reprobuild"}
    alone = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {"kubernetes.io/os": "linux", "kubernetes.io/arch": lock.platform.partition("/")[2]},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "fsGroup": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            # A node whose test breaks off must not end that of the others.
            "backoffLimit": nodes,
            "activeDeadlineSeconds": _SECONDS,
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }


def _dump(document: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415 -- slow to load, and the rest of `render` does without

    class Dumper(yaml.SafeDumper):
        """Writes a script as lines, which a reader can follow."""

    def text(dumper: Dumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, width=1000)
