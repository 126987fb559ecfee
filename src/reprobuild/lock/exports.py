"""Export a lock to the formats of other tools: requirements with hashes, a list of files, CycloneDX. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .bill import Facts, cyclonedx
from .model import Lock
from .packages import CondaPackage, PythonPackage, SourceArchive

Form = Literal["requirements", "explicit", "cyclonedx"]


def export(lock: Lock, form: Form, facts: Mapping[str, Facts] | None = None) -> str:
    """Return the text of a lock in a form; the same lock and ``facts`` give the same text."""
    match form:
        case "requirements":
            return requirements(lock)
        case "explicit":
            return explicit(lock)
        case "cyclonedx":
            return cyclonedx(lock, facts)


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


def _line(package: PythonPackage) -> str:
    source = package.source
    if source is not None and source.kind in ("vcs", "directory"):
        return f"{package.name} @ {source.address}"
    if source is not None and source.kind == "archive":
        return f"{package.name} @ {source.url} --hash=sha256:{source.sha256}"
    return f"{package.pin} --hash=sha256:{package.file.sha256}"
