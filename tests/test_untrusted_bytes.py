"""Every reader of untrusted bytes, given damaged ones: it reads them, or refuses them in words.

The examples are mutations of good files, drawn from a seed that a failure names, for some seconds in all;
REPROBUILD_TEST_FUZZ_SECONDS tries for longer, REPROBUILD_TEST_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import io
import json
import os
import random
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.errors import ReprobuildError
from reprobuild.imports.reader import read_import
from reprobuild.in_image.manifest import read as read_manifest
from reprobuild.layers.debian import normalise
from reprobuild.lock.layer_record import LayerRecord
from reprobuild.lock.reader import parse_lock
from reprobuild.oci.file_tree import read_tree
from reprobuild.oci.stream import archive_members
from reprobuild.oci.tar_writer import LayerWriter
from reprobuild.request.toml_reader import load_toml
from reprobuild.request.yaml_reader import load_yaml
from reprobuild.selftest.report import SelfTestReport
from reprobuild.sources.archive import told
from reprobuild.twice.records import read_records
from reprobuild.verify.check import check_tree
from support.locks import LOCK
from support.reports import a_report
from support.sdists import sdist
from support.trees import image

SECONDS = float(os.environ.get("REPROBUILD_TEST_FUZZ_SECONDS", "12"))
SEED = int(os.environ.get("REPROBUILD_TEST_FUZZ_SEED", str(time.time_ns() % 10**9)))
SLOWEST = 10.0
"""Seconds of processor for one example of some kilobytes, beside whatever else the machine does."""

ODD = (
    *(
        b"9" * 5000,
        b"NaN",
        b"Infinity",
        b"-1",
        b"1e999",
        b"18446744073709551616",
        b'"\\ud800"',
        b"null",
        b"[]",
    ),
    *(
        b"\0",
        b"\n",
        b"\r",
        b"\xff",
        b"../",
        b"{}",
        b'""',
        b"[" * 2000,
        b" " * 5000,
        b"\\n--index-url=x",
        b"%",
    ),
)


def mutated(good: bytes, draw: random.Random) -> bytes:
    """Return bytes with a few changes: cut, repeated, replaced by odd ones."""
    data = bytearray(good)
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(data) + 1)
        end = min(len(data), start + draw.choice((0, 1, 2, 8, 64, 512)))
        match draw.randrange(4):
            case 0:
                data[start:end] = draw.choice(ODD)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = data[start:end] * draw.choice((1, 2, 50))
            case _:
                data[start:end] = draw.randbytes(end - start)
    return bytes(data)


def archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("usr", "usr/bin/sh", "etc/x" * 30):
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"abc"))
    return out.getvalue()


def buffered(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))


def readers(folder: Path) -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """Each reader by its name, with something good for it."""

    def by_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        def reading(data: bytes) -> object:
            (folder / name).write_bytes(data)
            return read(folder / name)

        return reading

    def checked(kept: str) -> Callable[[bytes], object]:
        tree = image()
        return lambda data: check_tree(type(tree)(tree.files, tree.config, {**tree.kept, kept: data}), "x")

    named = b'name = "a"\nversion = "1"\n'
    project = (
        b"[project]\n"
        + named
        + b"dependencies = ['a>=1; python_version > \"3\"', 'b @ https://x.example/b-1.zip']"
    )
    uv = b"version = 1\nrequires-python = '>=3.11'\n[[package]]\n" + named
    uv += b"source = { registry = 'https://x.example' }\n"
    pip = b"a==1 --hash=sha256:ab\n-r b.txt\n-e ./c ; x\nd @ git+https://x/y\n"
    locked = b"lock-version = '1.0'\n[[packages]]\n" + named
    conda = b"name: x\nchannels: [conda-forge]\ndependencies: [python=3.11, {pip: [a]}]\n"
    setup = b"from setuptools import setup\nsetup(name='x', install_requires=['a'])\n"
    pipfile = b'{"_meta": {}, "default": {"a": {"version": "==1"}}}'
    moment = b'{"k":"call","of":"N","parts":[["o","ab",""]],"loss":"","sample":"","wall":0.5,"spent":0.1}\n'
    process = b'{"k":"process","format":1,"rank":"0","worker":"","name":"M","argv":["t"]}\n'
    record = LayerRecord(images={}, layers={}).dump()
    tree = image()
    return {
        "lock": (LOCK.dump().encode(), lambda d: parse_lock(d.decode("utf-8", "replace"), "x")),
        "record": (record, lambda d: LayerRecord.parse(d, "x")),
        "report": (json.dumps(a_report()).encode(), lambda d: SelfTestReport.parse(d, digest="x")),
        "toml": (project, lambda d: load_toml(d.decode("utf-8", "replace"))),
        "yaml": (b"a: [1, 2]\nb: {c: d}\n", lambda d: load_yaml(d.decode("utf-8", "replace"))),
        "manifest": (tree.kept["opt/reprobuild/manifest.tsv"], lambda d: [*read_manifest(d)]),
        "check": (tree.kept["opt/reprobuild/manifest.tsv"], checked("opt/reprobuild/manifest.tsv")),
        "cache": (b"glibc-ld.so.cache1.1" + bytes(99), checked("etc/ld.so.cache")),
        "image": (archive(), lambda d: read_tree(archive_members(buffered(d)), "x")),
        "root": (archive(), lambda d: normalise(io.BytesIO(d), LayerWriter(io.BytesIO()))),
        "source": (sdist("a", "1"), by_file("a.tar.gz", lambda f: told(f, "a-1.tar.gz"))),
        "requirements": (pip, by_file("r.txt", read_import)),
        "pyproject": (project, by_file("pyproject.toml", read_import)),
        "uv": (uv, by_file("uv.lock", read_import)),
        "poetry": (uv, by_file("poetry.lock", read_import)),
        "pipfile": (pipfile, by_file("Pipfile.lock", read_import)),
        "pylock": (locked, by_file("pylock.toml", read_import)),
        "conda": (conda, by_file("e.yml", read_import)),
        "setup": (setup, by_file("setup.py", read_import)),
        "twice": (process + moment * 3, by_file("1.jsonl", lambda _: read_records(folder))),
    }


@pytest.mark.slow
def test_damaged_bytes_are_read_or_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    every = readers(tmp_path)
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for name, (good, read) in every.items():
            if time.monotonic() > end and count:
                break
            count += 1
            where = f"REPROBUILD_TEST_FUZZ_SEED={SEED}, {name}, example {count}"
            data = mutated(good, random.Random(f"{SEED} {count}"))
            start = time.process_time()
            try:
                read(data)
            except ReprobuildError:
                pass
            except Exception as error:
                if isinstance(error, ValueError) and name in ("toml", "yaml", "manifest"):
                    continue
                raise AssertionError(f"{where}: {data[:300]!r}") from error
            assert time.process_time() - start < SLOWEST, where
