"""Kubernetes Job that runs the self-test on each node, and a script that collects the reports. Pure.

Sources: the API's reference for batch/v1 Job ("Indexed" completion) and core/v1 PodSpec; the Pod Security
Standards, whose profile "restricted" the pods keep to.
"""

from __future__ import annotations

import re

from ..errors import RenderError
from ..lock.model import Lock
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from .filters import fill

MANIFESTS, COLLECT = "fleet.yaml", "collect.sh"
"""The files that are written."""

MOST_NODES = 5000
"""Kubernetes supports no more in a cluster."""

_BY_DIGEST = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}"
)
"""A tag may be beside the digest, by which containerd, Docker and Podman go (distribution/reference)."""


def is_by_digest(image: str) -> bool:
    """Whether an image is named by its registry, its repository and its digest."""
    return bool(_BY_DIGEST.fullmatch(image))


def fleet_job(lock: Lock, image: str, nodes: int) -> dict[str, bytes]:
    """Return the files, by name: the manifests, and the script that gathers the reports.

    ``image`` is named by its digest. Raises `RenderError` for one that is not.
    """
    if not is_by_digest(image):
        raise RenderError(
            f"{image!r} does not name an image by its registry, its repository and its digest",
            hint="like registry.example/team/torch@sha256:…; `reprobuild push` prints the digest",
        )
    name, gpu = _name(lock), lock.request.cuda != "cpu"
    manifests = fill(
        "kubernetes.yaml.j2",
        name=name,
        image=image,
        nodes=nodes,
        architecture=lock.platform.partition("/")[2],
        gpu=gpu,
        device="cuda" if gpu else "cpu",
        venv=SITE_PREFIX,
        own_folder=OWN_FOLDER,
    )
    return {MANIFESTS: manifests, COLLECT: fill("kubernetes-collect.sh.j2", name=name)}


def _name(lock: Lock) -> str:
    """Return a name that a label may have (RFC 1123), the same for the same request."""
    plain = re.sub(r"[^a-z0-9]+", "-", lock.request.name.lower()).strip("-")
    return f"reprobuild-{plain}"[:50].rstrip("-")
