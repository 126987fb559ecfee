"""Write a bill of materials of a lock: CycloneDX 1.6 as JSON (https://cyclonedx.org/docs/1.6/json/). Pure."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .. import __version__
from .model import Lock
from .packages import CondaPackage, DebianPackage, PythonPackage

_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
"""A percent sign that does not start an escape sequence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Facts about a locked package from its file, beyond the lock."""

    expression: str = ""
    """Its license as an SPDX expression."""
    licenses: Sequence[str] = ()
    """Else its licenses, by the names that it has for them."""
    upstream: str = ""
    """Of a Debian package its source package, as ``NAME`` or ``NAME@VERSION``; empty: the same as its own."""
    requires: Sequence[str] = ()
    """The SHA-256 of the locked files that it depends on."""
    parts: Sequence[Mapping[str, str]] = ()
    """What it was built from, by its own bill of materials (PEP 770): type, name, version, purl, sha256."""
    unread: Sequence[str] = ()
    """The paths of such bills that are not CycloneDX's JSON, and so are not merged."""


def cyclonedx(lock: Lock, facts: Mapping[str, Facts] | None = None) -> str:
    """Return the bill of a lock; ``facts`` by the SHA-256 of a package's file.

    A component without facts has no entry in ``dependencies``, which means that they are not known.
    """
    known = facts or {}
    components = _with_facts([(p.wheel.sha256, _python(p)) for p in lock.python], known)
    components += _with_facts([(p.sha256, _conda(p)) for p in lock.conda], known)
    components += _with_facts([(p.sha256, _debian(p, lock, known.get(p.sha256))) for p in lock.debian], known)
    refs = {sha256: table["bom-ref"] for sha256, table in components}
    contents = [*_below(lock), *(table for _, table in components), *_own_files(lock)]
    for_builds = [_for_builds(_python(p)) for p in lock.build.python]
    for_builds += [_for_builds(_debian(deb, lock)) for deb in lock.build.debian]
    dependencies = [{"ref": lock.digest, "dependsOn": sorted({c["bom-ref"] for c in contents})}]
    for sha256, ref in refs.items():
        if sha256 in known:
            below = {refs[each] for each in known[sha256].requires if each in refs} - {ref}
            dependencies.append({"ref": ref, "dependsOn": sorted(below)})
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
        "components": [*contents, *for_builds],
        "dependencies": dependencies,
    }
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def _below(lock: Lock) -> list[dict[str, Any]]:
    """Return the components below the packages: the base image or the Debian release, and Python."""
    found: list[dict[str, Any]] = []
    if lock.base is not None:
        digest = lock.base.manifests[lock.platform]
        name = lock.base.name
        purl = f"pkg:oci/{name.rpartition('/')[2]}@{quote(digest)}?repository_url={quote(name)}"
        found.append(_component(purl, name, digest, digest.removeprefix("sha256:")))
    elif release := _release(lock):
        ref = f"debian-{release}"
        found.append({"type": "operating-system", "bom-ref": ref, "name": "debian", "version": release})
    if (python := lock.standalone) is not None:
        purl = f"pkg:generic/cpython@{python.version}?download_url={quote(python.url, safe='')}"
        found.append(_component(purl, "cpython", python.version, python.sha256, python.url))
    return found


def _release(lock: Lock) -> str:
    """Return the number of the Debian release: base-files has it; empty where the lock has none."""
    version = next((p.version for p in lock.debian if p.name == "base-files"), "")
    return found[0] if (found := re.match(r"\d+", version)) else ""


def _own_files(lock: Lock) -> list[dict[str, Any]]:
    if lock.own_files is None:
        return []
    return [
        {
            "type": "file",
            "bom-ref": f"reprobuild:{name}",
            "name": name,
            "version": lock.own_files.version,
            "hashes": [{"alg": "SHA-256", "content": sha256}],
        }
        for name, sha256 in lock.own_files.sha256.items()
    ]


def _with_facts(
    tables: Sequence[tuple[str, dict[str, Any]]], facts: Mapping[str, Facts]
) -> list[tuple[str, dict[str, Any]]]:
    for sha256, table in tables:
        found = facts.get(sha256, Facts())
        if found.expression:
            table["licenses"] = [{"expression": found.expression, "acknowledgement": "declared"}]
        elif found.licenses:
            names = [{"name": name, "acknowledgement": "declared"} for name in found.licenses]
            table["licenses"] = [{"license": name} for name in names]
        if found.parts:
            table["components"] = [_part(table["bom-ref"], n, part) for n, part in enumerate(found.parts)]
        if found.unread:
            table["properties"] = [{"name": "reprobuild:sbom", "value": path} for path in found.unread]
    return list(tables)


def _part(of: str, number: int, part: Mapping[str, str]) -> dict[str, Any]:
    """Return a component in a package, which may be there under the same name in another package."""
    table: dict[str, Any] = {key: part[key] for key in ("type", "name", "version", "purl") if part.get(key)}
    if part.get("sha256"):
        table["hashes"] = [{"alg": "SHA-256", "content": part["sha256"]}]
    return {**table, "bom-ref": f"{of}#part-{number}"}


def _for_builds(component: dict[str, Any]) -> dict[str, Any]:
    """Mark packages that are not in the image, where another version or wheel may be."""
    return {**component, "bom-ref": f"{component['bom-ref']}#build", "scope": "excluded"}


def _python(package: PythonPackage) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{quote(package.version)}"
    wheel, source = package.wheel, package.source
    table = _component(purl, package.name, package.version, wheel.sha256, wheel.url)
    if source is not None:
        hashes = [{"alg": "SHA-256", "content": source.sha256}]
        kind = "vcs" if source.kind == "vcs" else "source-distribution"
        reference = {"type": kind, "url": _uri(source.address or source.url), "hashes": hashes}
        table["externalReferences"] = [reference]
    return table


def _conda(package: CondaPackage) -> dict[str, Any]:
    purl = f"pkg:conda/{quote(package.name)}@{quote(package.version)}"
    purl += f"?build={quote(package.build)}&subdir={package.subdir}"
    return _component(purl, package.name, package.version, package.sha256, package.url)


def _debian(package: DebianPackage, lock: Lock, facts: Facts | None = None) -> dict[str, Any]:
    release = _release(lock)
    purl = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}"
    purl += f"?arch={package.architecture}&distro={f'debian-{release}' if release else lock.suite}"
    if facts is not None and facts.upstream:
        purl += f"&upstream={quote(facts.upstream, safe='')}"
    # A lock names no mirror: the address is below that of the archive, on any mirror.
    return _component(
        purl, package.name, package.version, package.sha256, f"{package.archive}/{quote(package.path)}"
    )


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
        table["externalReferences"] = [{"type": "distribution", "url": _uri(url)}]
    return table


def _uri(address: str) -> str:
    """Return an address as an RFC 3986 URI, which the schema requires and indexes may violate."""
    host = found[0] if (found := re.match(r"[a-z+]+://[^/?#]*", address)) else ""
    parts = address[len(host) :].split("#", 1)
    escaped = (quote(_PERCENT.sub("%25", part), safe="%/:?@!$&'()*+,;=") for part in parts)
    return host + "#".join(escaped)
