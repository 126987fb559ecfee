"""A package that exists only as source, compiled in Debian's own root with Debian's compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve.resolver import Upgrade, resolve
from reprobuild.sources.workshop import build_locked, to_fetch
from support.hosts import quiet_host
from support.resolving import request
from support.sdists import tar_gz

pytestmark = pytest.mark.slow

FILES = {
    "setup.py": "from setuptools import Extension, setup\n"
    "setup(name='greeter', version='1.0', ext_modules=[Extension('greeter', ['greeter.c'])])\n",
    "greeter.c": """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "greeter", "at " __FILE__, -1, NULL};
PyMODINIT_FUNC PyInit_greeter(void) { return PyModule_Create(&module); }
""",
}
APT = ["gcc", "libc6-dev", "python3.11-dev"]


def test_an_extension_is_compiled_twice_and_again_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    body = tar_gz({f"greeter-1.0/{path}": text.encode() for path, text in FILES.items()})
    (tmp_path / "links").mkdir()
    (tmp_path / "links/greeter-1.0.tar.gz").write_bytes(body)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "links"))
    host = quiet_host(Home(tmp_path / "home"))
    keys = {"cuda": "12.1", "packages": ["greeter"]}
    with pytest.raises(BuildError, match=r"greeter 1\.0: it could not be built") as caught:
        resolve(request(**keys), existing=None, upgrade=Upgrade(), host=host)
    assert '[build] apt = ["g++", "python3.11-dev"]' in caught.value.hint
    wanted = request(**keys, build={"apt": APT})
    lock = resolve(wanted, existing=None, upgrade=Upgrade(), host=host)
    assert parse_lock(lock.dump(), "test") == lock
    (greeter,) = (p for p in lock.python if p.name == "greeter")
    assert greeter.wheel.filename.startswith("greeter-1.0-cp311-cp311-linux_")
    assert "gcc" in {p.name for p in lock.build.debian} - {p.name for p in lock.debian}
    assert resolve(wanted, existing=lock, upgrade=Upgrade(), host=host) == lock
    store = Store(host.home)
    store.remove(greeter.wheel.sha256)
    needed = to_fetch(lock, store)
    assert needed == lock
    build_locked(lock, store, host)
    assert store.has(greeter.wheel.sha256, greeter.wheel.size)
    assert greeter.source is not None
    store.remove(greeter.source.sha256)
    assert to_fetch(lock, store).size < lock.size
