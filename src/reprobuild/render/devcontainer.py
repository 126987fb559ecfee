"""``.devcontainer/devcontainer.json`` of an image, for editors that work inside it. Pure.

The specification is https://containers.dev/implementors/json_reference/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..errors import RenderError
from ..lock.model import Lock
from ..request.image_layout import SITE_PREFIX
from .filters import printable
from .kubernetes import is_by_digest

FILE = ".devcontainer/devcontainer.json"
CERTIFICATES = ".devcontainer/ca-certificates.crt"

_CERTIFICATE_VARIABLES = ("CURL_CA_BUNDLE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
"""Of curl, pip, requests, and of OpenSSL, uv and Python."""


def devcontainer(lock: Lock, image: str, certificates: bytes | None = None) -> Mapping[str, bytes]:
    """Return the files of a project's dev container, by their paths from the project's folder.

    ``image`` is named by its digest in a registry, since others have no other name for the same image.
    ``certificates`` is a file of all CA certificates to trust inside it. Raises `RenderError`.
    """
    if not is_by_digest(image):
        raise RenderError(
            f"--devcontainer: {image!r} is not an image in a registry, named by its digest",
            hint="write it like registry.example/team/torch@sha256:…; `reprobuild push` prints the digest",
        )
    bundle = f"${{containerWorkspaceFolder}}/{CERTIFICATES}"
    document = {
        "name": str(printable(lock.request.name, "request.name")),
        "image": image,
        # As `run` gives it; Docker's 64 MB are too few for a DataLoader's workers.
        "runArgs": ["--shm-size=2g"],
        **({} if certificates is None else {"containerEnv": dict.fromkeys(_CERTIFICATE_VARIABLES, bundle)}),
        "customizations": {
            "vscode": {
                "extensions": ["ms-python.python"],
                "settings": {"python.defaultInterpreterPath": f"{SITE_PREFIX}/bin/python"},
            }
        },
        **({"hostRequirements": {"gpu": "optional"}} if lock.request.cuda != "cpu" else {}),
    }
    files = {FILE: (json.dumps(document, indent=2) + "\n").encode()}
    return files if certificates is None else {CERTIFICATES: certificates, **files}
