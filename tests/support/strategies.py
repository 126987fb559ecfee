"""Hypothesis strategies: requests, packages and locks of every shape that is allowed."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from hypothesis import strategies as st

from reprobuild.lock.model import Lock
from reprobuild.lock.own_files import OwnFiles
from reprobuild.lock.packages import DebianPackage, PythonPackage, Wheel
from reprobuild.lock.standalone_python import StandalonePython
from reprobuild.request.model import Request
from reprobuild.request.profiles import variables

requests = st.builds(
    Request.from_dict,
    st.fixed_dictionaries(
        {"cuda": st.one_of(st.just("cpu"), st.from_regex(r"[1-9][0-9]?\.[0-9]", fullmatch=True))},
        optional={
            "name": st.from_regex(r"[a-z0-9]{1,4}(-[a-z0-9]{1,4}){0,2}", fullmatch=True),
            "python": st.sampled_from(["3.11", "3.12", "3.13"]),
            "torch": st.sampled_from(["2.4.1", "2.13.0", "2.4", "v2.4.1", "2.5.0rc1", "1!2.0+cu121"]),
            "packages": st.lists(
                st.sampled_from(["numpy<2", "pandas", "a[b,c]>=1;python_version>'3'", "x~=1.0"])
            ),
            "apt": st.lists(st.sampled_from(["git", "curl", "g++", "libc6"])),
            "as-of": st.dates(),
            "index": st.just("pytorch"),
            "base": st.fixed_dictionaries({}, optional={"debian": st.sampled_from(["bookworm", "trixie"])}),
            "environment": st.dictionaries(
                st.sampled_from(["HF_HOME", "NCCL_SOCKET_IFNAME", "X_1"]),
                st.sampled_from(["", "/data/hf", "it's fine"]),
            ),
            "determinism": st.fixed_dictionaries(
                {},
                optional={
                    "profile": st.sampled_from(["strict", "portable"]),
                    "seed": st.integers(0, 2**32 - 1),
                    "threads": st.integers(1, 1024),
                },
            ),
        },
    ),
    st.just("generated"),
)

hashes = st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest())
sizes = st.integers(1, 2**40)
own_files = st.builds(
    OwnFiles,
    version=st.sampled_from(["0.1.0", "1.2.3.dev4+g0123abc"]),
    sha256=st.dictionaries(st.sampled_from(["golden.json", "selftest.py", "x.pth"]), hashes, min_size=1),
)
FOLDERS = ["https://packages.example.org/", "http://h.example.org:8080/x%20y/", "file:///srv/"]
names = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,3})?", fullmatch=True)
versions = st.sampled_from(["1", "1.0", "2.4.1", "1.0.post1", "1!2.0", "2.0+cu121", "3.0rc1", "2024.9.0"])
times = st.datetimes(
    datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001 -- bounds must be naive
).map(lambda time: time.replace(microsecond=0))  # fmt: skip


@st.composite
def pythons(draw: st.DrawFn, name: str) -> PythonPackage:
    version = draw(versions)
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    wheel = Wheel(
        filename=filename,
        url=draw(st.sampled_from(FOLDERS)) + filename,
        sha256=draw(hashes),
        size=draw(sizes),
        uploaded=draw(st.none() | times),
    )  # fmt: skip
    return PythonPackage(name=name, version=version, wheel=wheel)


@st.composite
def debs(draw: st.DrawFn, name: str) -> DebianPackage:
    version = draw(st.sampled_from(["1.0", "1:2.3-4+deb12u1", "2.36-9~x", "3.11.2-6+b8"]))
    return DebianPackage(
        name=name,
        version=version,
        architecture=draw(st.sampled_from(["amd64", "all"])),
        archive=draw(st.sampled_from(["debian", "debian-security"])),
        path=f"pool/main/{name[0]}/{name}_{version.partition(':')[2] or version}.deb",
        sha256=draw(hashes),
        size=draw(sizes),
    )


@st.composite
def standalones(draw: st.DrawFn, request: Request) -> StandalonePython | None:
    if not request.is_standalone:
        return None
    return StandalonePython(
        version=f"{request.python}.{draw(st.integers(0, 99))}",
        url="https://index.example/releases/download/20240101/cpython.tar.gz",
        sha256=draw(hashes),
        size=draw(st.integers(1, 2**30)),
    )


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    request = draw(requests)
    python = {*draw(st.sets(names, max_size=4)), "torch", "numpy", "pip"}
    debian = {*draw(st.sets(st.sampled_from(["git", "libc6", "g++", "bash"])))}
    debian.add("libc6" if request.is_standalone else f"python{request.python}")
    return Lock(
        request=request,
        platform=draw(st.sampled_from(["linux/amd64", "linux/arm64"])),
        epoch=draw(st.integers(0, 2**33 - 1)),
        python=[draw(pythons(name)) for name in draw(st.permutations(sorted(python)))],
        debian=[draw(debs(name)) for name in draw(st.permutations(sorted(debian)))],
        variables={
            **variables(request),
            "NCCL_ALGO": draw(st.text(st.characters(categories=["L", "N", "P"]))),
        },
        own_files=draw(st.none() | own_files),
        standalone=draw(standalones(request)),
    )
