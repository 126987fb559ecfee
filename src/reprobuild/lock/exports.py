"""lock → the forms that other tools read: requirements with hashes, a list of files, CycloneDX. Pure."""

from __future__ import annotations

import json
import uuid
from typing import Any, Literal
from urllib.parse import quote

from .. import __version__
from .model import CondaPackage, DebianPackage, Lock, PythonPackage, SourceArchive

Form = Literal["requirements", "explicit", "cyclonedx"]


def export(lock: Lock, form: Form) -> str:
    """Return the text of a lock in a form; the same lock gives the same text."""
    match form:
        case "requirements":
            return requirements(lock)
        case "explicit":
            return explicit(lock)
        case "cyclonedx":
            return cyclonedx(lock)


def requirements(lock: Lock) -> str:
    """Return the Python packages as pip reads them with ``--require-hashes``."""
    lines = [f"# The Python packages of {lock.request.name}, from lock {lock.digest}"]
    lines += [_line(p) for p in lock.python]
    return "\n".join(lines) + "\n"


def explicit(lock: Lock) -> str:
    """Return a line a file, ``ADDRESS#sha256:HEX``; a Debian package's address is ARCHIVE:PATH.

    With conda packages it is an explicit list as conda reads it, the rest in comments: wheels as conda-lock
    writes and reads them.
    """
    lines = [f"# Every file of {lock.request.name}, from lock {lock.digest}"]
    if lock.conda:
        lines += [f"# platform: {p}" for p in sorted({p.subdir for p in lock.conda} - {"noarch"})]
        lines += ["@EXPLICIT", *(f"{p.url}#sha256:{p.sha256}" for p in lock.conda)]
    for artifact in lock.artifacts:
        line = f"{artifact.address}#sha256:{artifact.sha256}"
        match artifact.of:
            case PythonPackage(source=SourceArchive(kind="vcs") as source):
                line = f"# {source.address} sha256:{source.sha256}"
            case CondaPackage():
                continue
            case PythonPackage(name=name) if lock.conda:
                line = f"# pip {name} @ {artifact.address}#sha256={artifact.sha256}"
            case _ if lock.conda:
                line = f"# {line}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def cyclonedx(lock: Lock) -> str:
    """Return a software bill of materials, CycloneDX 1.6 as JSON (https://cyclonedx.org/docs/1.6/json/)."""
    components = [_python(p) for p in lock.python]
    components += [_for_builds(_python(p)) for p in lock.build.python]
    if lock.base is not None:
        digest = lock.base.manifests[lock.platform]
        name = lock.base.name
        purl = f"pkg:oci/{name.rpartition('/')[2]}@{quote(digest)}?repository_url={quote(name)}"
        components.append(_component(purl, name, digest, digest.removeprefix("sha256:")))
    if (python := lock.standalone) is not None:
        purl = f"pkg:generic/cpython@{python.version}?download_url={quote(python.url, safe='')}"
        components.append(_component(purl, "cpython", python.version, python.sha256, python.url))
    for conda in lock.conda:
        purl = f"pkg:conda/{quote(conda.name)}@{quote(conda.version)}"
        purl += f"?build={quote(conda.build)}&subdir={conda.subdir}"
        components.append(_component(purl, conda.name, conda.version, conda.sha256, conda.url))
    components += [_debian(deb, lock.suite) for deb in lock.debian]
    components += [_for_builds(_debian(deb, lock.suite)) for deb in lock.build.debian]
    if lock.own_files is not None:
        components += [
            {
                "type": "file",
                "bom-ref": f"reprobuild:{name}",
                "name": name,
                "version": lock.own_files.version,
                "hashes": [{"alg": "SHA-256", "content": sha256}],
            }
            for name, sha256 in lock.own_files.sha256.items()
        ]
    table = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # Of the lock's digest and not drawn, so that the same lock gives the same bytes.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, lock.digest)}",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "reprobuild", "version": __version__}]},
            "component": {
                "type": "container",
                "bom-ref": lock.digest,
                "name": lock.request.name,
                "version": lock.digest,
            },
        },
        "components": components,
    }
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def _for_builds(component: dict[str, Any]) -> dict[str, Any]:
    """Mark what is not in the image; another version, or another wheel of it, may be there."""
    return {**component, "bom-ref": f"{component['bom-ref']}#build", "scope": "excluded"}


def _line(package: PythonPackage) -> str:
    source = package.source
    if source is not None and source.kind in ("vcs", "directory"):
        return f"{package.name} @ {source.address}"
    if source is not None and source.kind == "archive":
        return f"{package.name} @ {source.url} --hash=sha256:{source.sha256}"
    return f"{package.pin} --hash=sha256:{package.file.sha256}"


def _python(package: PythonPackage) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{quote(package.version)}"
    wheel, source = package.wheel, package.source
    table = _component(purl, package.name, package.version, wheel.sha256, wheel.url)
    if source is not None:
        hashes = [{"alg": "SHA-256", "content": source.sha256}]
        kind = "vcs" if source.kind == "vcs" else "source-distribution"
        reference = {"type": kind, "url": source.address or source.url, "hashes": hashes}
        table["externalReferences"] = [reference]
    return table


def _debian(package: DebianPackage, suite: str) -> dict[str, Any]:
    purl = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}"
    purl += f"?arch={package.architecture}&distro={suite}"
    return _component(purl, package.name, package.version, package.sha256)


def _component(purl: str, name: str, version: str, sha256: str, url: str = "") -> dict[str, Any]:
    table: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "purl": purl,
    }
    if url:
        table["externalReferences"] = [{"type": "distribution", "url": url}]
    return table
