"""Requests and Debian packages in one line, for tests of the resolver."""

from __future__ import annotations

from typing import Any

from reprobuild.lock.model import DebianPackage
from reprobuild.request.model import Request

LINUX = "cp311-cp311-manylinux_2_17_x86_64"


def request(**keys: Any) -> Request:
    """A request, by its keys in the file."""
    return Request.from_dict({"cuda": "12.1", **keys}, "test")


def debian(name: str, version: str, archive: str = "debian") -> DebianPackage:
    """A Debian package as locked; its bytes do not exist."""
    return DebianPackage(
        name=name,
        version=version,
        architecture="amd64",
        archive=archive,
        path=f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb",
        sha256="0" * 64,
        size=1,
    )


BASE = (debian("libc6", "2.36-9+deb12u14"), debian("python3.11", "3.11.2-6+deb12u9", "debian-security"))
