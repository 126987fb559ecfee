"""Debian's packages of a lock."""

from __future__ import annotations

import hashlib

import pytest

from reprobuild.errors import ResolveError
from reprobuild.host.machine import architecture as this_machine
from support.apt_archive import BASE, World, versions

pytest_plugins = ["support.apt_archive"]


def test_another_architecture_than_the_machine_s(world: World) -> None:
    here = this_machine()
    other = "arm64" if here == "amd64" else "amd64"
    world.main.machine = world.security.machine = other
    for archive in (world.main, world.security):
        archive.stanzas = [stanza.replace(here, other) for stanza in archive.stanzas]
    world.main.add("only-there", "1.0", Depends="libc6")
    world.publish()
    found = world.resolve("only-there", architecture=other)
    assert versions(found) == dict(sorted({**BASE, "only-there": "1.0"}.items()))
    assert {package.architecture for package in found.values()} == {other}
    with pytest.raises(ResolveError, match=f"main/binary-{here}/Packages|has no Python"):
        world.resolve(architecture=here)


def test_what_a_lock_needs(world: World) -> None:
    found = world.resolve("git")
    python = found["python3.11"]
    assert python.archive == "debian-security"
    assert python.path == "pool/updates/main/p/python3.11/python3.11_3.11.2-6+deb12u9_x.deb"
    assert python.sha256 == hashlib.sha256(python.path.encode()).hexdigest()
    assert python.size == len(python.path)
    git = found["git"]
    assert (git.archive, git.architecture) == ("debian", this_machine())
    assert git.path == f"pool/main/g/git/git_2.39.5-0+deb12u1_{git.architecture}.deb"
