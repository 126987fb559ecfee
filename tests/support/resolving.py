"""Requests and Debian packages in one line, for tests of the resolver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import requests

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.packages import DebianPackage
from reprobuild.request.model import Request
from reprobuild.resolve.resolution import Resolution
from reprobuild.resolve.target import TargetPython

TARGET = TargetPython("3.11", "amd64", (2, 36))
LINUX = "cp311-cp311-manylinux_2_17_x86_64"


def request(**keys: Any) -> Request:
    """A request, by its keys in the file."""
    return Request.from_dict({"cuda": "12.1", **keys}, "test")


def resolution(http: requests.Session, asked: Request | None = None, **more: Any) -> Resolution:
    """A resolution for Debian 12, whose host nothing is built on."""
    host = Host(Home(Path("/none")), Console(quiet=True))
    keys: dict[str, Any] = {"request": asked or request(), "target": TARGET, "host": host, "session": http}
    return Resolution(**(keys | more))


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
