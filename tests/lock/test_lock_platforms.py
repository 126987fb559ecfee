"""One file with the locks of two platforms: there and back, told apart by installers, refused when edited."""

from __future__ import annotations

import hashlib
import tomllib
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.pylock import PackageWheel, Pylock

from reprobuild.errors import LockError
from reprobuild.lock.model import MACHINES, Lock
from reprobuild.lock.packages import PythonPackage
from reprobuild.lock.platforms import digest_of, dump_locks, parse_locks
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve.target import TargetPython
from support.locks import LOCK, SMALL
from support.strategies import FOLDERS, debs, names, pythons, requests, standalones

BOTH = ("linux/amd64", "linux/arm64")
TAGS = (
    "py3-none-any",
    "py2.py3-none-any",
    "py3-none-manylinux_2_17_{0}.manylinux2014_{0}",
    "py3-none-linux_{0}",
)


def tagged(package: PythonPackage, platform: str, tag: str) -> PythonPackage:
    filename = f"{package.name.replace('-', '_')}-{package.version}-{tag.format(MACHINES[platform])}.whl"
    # One name is one file.
    wheel = replace(
        package.wheel,
        filename=filename,
        url=FOLDERS[0] + filename,
        sha256=hashlib.sha256(filename.encode()).hexdigest(),
    )
    return replace(package, wheel=replace(wheel, size=1, uploaded=None))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Lock, ...]:
    request = replace(draw(requests), platforms=BOTH)
    every = {*draw(st.sets(names, max_size=4)), "torch", "numpy", "pip"}
    of_all = [draw(pythons(name)) for name in sorted(every)]
    made = []
    for platform in BOTH:
        python = []
        for package in of_all:
            which = draw(st.sampled_from(["same", "other", "tag", "none"]))
            version = draw(pythons(package.name)) if which == "other" else package
            if which in ("other", "tag"):
                version = tagged(version, platform, draw(st.sampled_from(TAGS)))
            if which != "none" or package.name in ("torch", "numpy", "pip"):
                python.append(version)
        debian = [draw(debs(name)) for name in ("libc6", f"python{request.python}")]
        debian = debian[:1] if request.is_standalone else debian
        variables = {**dict(request.environment), "NCCL_ALGO": draw(st.sampled_from(["1", "2"]))}
        lock = Lock(
            request=request,
            platform=platform,
            epoch=draw(st.integers(0, 9)),
            python=python,
            debian=debian,
            variables=variables,
            standalone=draw(standalones(request)),
        )
        made.append(lock)
    return tuple(made)


def one_file_a_name(locks: tuple[Lock, ...]) -> bool:
    wheels = {(p.wheel.filename, p.wheel) for lock in locks for p in lock.python}
    return len(wheels) == len({name for name, _ in wheels})


@given(pairs().filter(one_file_a_name))
@settings(max_examples=30)
def test_there_and_back(locks: tuple[Lock, ...]) -> None:
    text = dump_locks(locks)
    assert parse_locks(text, "again") == locks
    assert dump_locks(locks[::-1]) == text
    assert tomllib.loads(text)["tool"]["reprobuild"]["digest"] == digest_of(locks)
    pylock = Pylock.from_dict(tomllib.loads(text))
    assert [str(p.name) for p in pylock.packages] == sorted(str(p.name) for p in pylock.packages)


@given(pairs().filter(one_file_a_name))
@settings(max_examples=30)
def test_an_installer_finds_the_files_of_its_platform(locks: tuple[Lock, ...]) -> None:
    pylock = Pylock.from_dict(tomllib.loads(dump_locks(locks)))
    for lock in locks:
        target = TargetPython(lock.request.python, lock.platform.partition("/")[2], (2, 36))
        environment: Any = {**target.markers, "platform_release": "", "platform_version": ""}
        selected = [
            file
            for _, file in pylock.select(
                environment=environment, tags=sorted(target._tags, key=lambda tag: target._tags[tag])
            )
        ]
        found = {file.hashes["sha256"] for file in selected if isinstance(file, PackageWheel)}
        assert found == {package.wheel.sha256 for package in lock.python}


@pytest.mark.parametrize("lock", [LOCK, SMALL], ids=["golden", "small"])
def test_one_platform_is_written_as_ever(lock: Lock) -> None:
    assert dump_locks([lock]) == lock.dump()
    assert digest_of([lock]) == lock.digest
    assert parse_locks(lock.dump(), "one") == (lock,) == (parse_lock(lock.dump(), "one"),)


PAIR = tuple(
    replace(
        SMALL,
        request=replace(SMALL.request, platforms=BOTH),
        platform=platform,
        python=[tagged(p, platform, TAGS[3]) if p.name == "torch" else p for p in SMALL.python],
    )
    for platform in BOTH
)
TEXT = dump_locks(PAIR)


def test_a_wheel_a_platform_under_one_entry() -> None:
    table = tomllib.loads(TEXT)
    torch = next(p for p in table["packages"] if p["name"] == "torch")
    assert [w["name"] for w in torch["wheels"]] == [
        f"torch-2.4.1-py3-none-linux_{machine}.whl" for machine in ("aarch64", "x86_64")
    ]
    assert "marker" not in torch
    numpy = next(p for p in table["packages"] if p["name"] == "numpy")
    assert len(numpy["wheels"]) == 1
    assert table["environments"] == [
        f"sys_platform == 'linux' and platform_machine == '{machine}'" for machine in ("x86_64", "aarch64")
    ]


@given(st.integers(0, len(TEXT.encode()) - 1), st.integers(1, 255))
@settings(max_examples=60)
def test_a_flipped_byte_is_refused_or_says_the_same(place: int, change: int) -> None:
    data = bytearray(TEXT.encode())
    data[place] ^= change
    with suppress(UnicodeDecodeError, LockError):
        assert parse_locks(data.decode(), "flipped") == PAIR


def edited(path: tuple[str | int, ...], value: Any) -> str:
    table = tomllib.loads(TEXT)
    spot: Any = table
    for part in path[:-1]:
        spot = spot[part]
    if value is None:
        del spot[path[-1]]
    else:
        spot[path[-1]] = value
    return tomli_w.dumps(table)


OWN = ("tool", "reprobuild")
PART = (*OWN, "platforms", "linux/arm64")
HAND = "its content does not match its digest"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("packages",), 3, "a.toml: not a PEP 751 lock"),
        (("packages", 0, "marker"), "platform_machine == 'riscv64'", "linux/amd64: "),
        (("packages", 0, "wheels"), [], "wheels"),
        (("packages", 0, "wheels", 0, "hashes", "sha256"), "0" * 64, HAND),
        (("packages", 0, "wheels", 0, "size"), 1, HAND),
        (("environments",), ["sys_platform == 'linux'"], HAND),
        ((*OWN, "digest"), "sha256:" + "0" * 64, HAND),
        ((*OWN, "colour"), 1, HAND),
        ((*OWN, "platforms"), 3, "expected a table for each platform"),
        ((*OWN, "platforms"), {"linux/amd64": 1, "linux/arm64": 2}, "expected a table for each platform"),
        ((*OWN, "platforms", "linux/mips"), {}, "platforms.linux/mips: unknown platform"),
        (PART, None, "expected a table for each platform"),
        ((*PART, "epoch"), 7, f"a.toml: linux/arm64: {HAND}"),
        ((*PART, "stack"), {}, "linux/arm64: tool.reprobuild.stack"),
        ((*PART, "debian", 0, "sha256"), "0", "linux/arm64: tool.reprobuild.debian[0].sha256"),
        ((*PART, "digest"), "sha256:" + "0" * 64, f"linux/arm64: {HAND}"),
        ((*PART, "colour"), 1, "tool.reprobuild.colour: unknown key"),
        ((*OWN, "request"), 3, "tool.reprobuild.request"),
        ((*OWN, "request", "platforms"), ["linux/amd64"], "request-digest"),
    ],
)  # fmt: skip
def test_what_was_edited_is_refused(path: tuple[str | int, ...], value: Any, message: str) -> None:
    with pytest.raises(LockError) as caught:
        parse_locks(edited(path, value), "a.toml")
    assert caught.value.message.startswith("a.toml: ")
    assert message in caught.value.message


def test_a_wheel_too_many_is_refused() -> None:
    table = tomllib.loads(TEXT)
    torch = next(p for p in table["packages"] if p["name"] == "torch")
    wheel = torch["wheels"][0]
    name = "torch-2.4.1-py3-none-any.whl"
    torch["wheels"].append({**wheel, "name": name, "url": FOLDERS[0] + name})
    with pytest.raises(LockError, match=HAND):
        parse_locks(tomli_w.dumps(table), "a.toml")


def test_the_locks_of_other_platforms_than_the_request_names() -> None:
    alone = tuple(replace(lock, request=SMALL.request) for lock in PAIR)
    with pytest.raises(LockError, match="its platforms are not those of its request"):
        parse_locks(dump_locks(alone), "a.toml")
    other = replace(PAIR[0], request=replace(SMALL.request, platforms=BOTH[1:]))
    with pytest.raises(LockError, match="platform: linux/amd64 is not one of the request's platforms"):
        parse_lock(other.dump(), "a.toml")
