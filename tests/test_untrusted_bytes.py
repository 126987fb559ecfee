"""Every reader of untrusted bytes, given damaged ones: it reads them, or refuses them in words.

The examples are mutations of good files, drawn from a seed that a failure names, for some seconds in all;
REPROBUILD_TEST_FUZZ_SECONDS tries for longer, REPROBUILD_TEST_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import pickle
import random
import shutil
import sqlite3
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests

from reprobuild.bundle.contents import Manifest, Member
from reprobuild.errors import ReprobuildError, RequestError
from reprobuild.fetch.deb_file import archive_entry
from reprobuild.fetch.store import Store
from reprobuild.imports.recognize import read_import
from reprobuild.in_image.manifest import read as read_manifest
from reprobuild.layers.debian import normalise
from reprobuild.layers.registry_pull import parse_paths
from reprobuild.lock.layer_record import LayerRecord, RecordedLayer
from reprobuild.lock.reader import parse_lock
from reprobuild.oci.file_tree import read_tree
from reprobuild.oci.registry.client import Registry
from reprobuild.oci.registry.referrers import referrers
from reprobuild.oci.stream import archive_members, layout_members
from reprobuild.oci.tar_writer import LayerWriter, Record
from reprobuild.request.kernels import canonical
from reprobuild.request.table import refused_as
from reprobuild.request.toml_reader import load_toml
from reprobuild.request.yaml_reader import load_yaml
from reprobuild.resolve.vulnerabilities import find_vulnerabilities
from reprobuild.selftest.report import SelfTestReport
from reprobuild.sources.source_archive import told
from reprobuild.twice.baseline import read_baseline, write_baseline
from reprobuild.twice.checkpoints import tensors
from reprobuild.twice.databases import database_lines
from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.receipt.model import parse_receipt
from reprobuild.twice.recorded_run import ProgramRun
from reprobuild.twice.records import Moment, MomentPart, Stream, read_records
from reprobuild.verify.check import check_tree
from reprobuild.verify.evidence.judgement import judge
from reprobuild.verify.evidence.keys import read_public_key
from reprobuild.verify.evidence.policy import Policy
from reprobuild.verify.evidence.statements import rebuilt
from support.evidence import MADE, SUBJECT, a_lock, signed, texts, write_key
from support.images import Entry, docker_archive, layer, layout, oci_archive
from support.locks import LOCK
from support.receipts import table
from support.reports import a_report
from support.sdists import sdist
from support.trees import image

SECONDS = float(os.environ.get("REPROBUILD_TEST_FUZZ_SECONDS", "12"))
SEED = int(os.environ.get("REPROBUILD_TEST_FUZZ_SEED", str(time.time_ns() % 10**9)))
DIGEST = "sha256:" + "a" * 64
RECORDED = RecordedLayer(
    key="a" * 64,
    title="x",
    diff_id=DIGEST,
    digest=DIGEST,
    size=1,
    media_type="application/vnd.oci.image.layer.v1.tar+gzip",
    paths=DIGEST,
    paths_size=9,
)
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


ODD_VALUES: Sequence[Any] = (
    None,
    True,
    5,
    -1,
    1e400,
    float("nan"),
    10**400,
    "",
    "x",
    "\ud800",
    [],
    [5],
    [[]],
    {},
    {"a": 5},
)


def with_odd_value(table: Any, draw: random.Random) -> Any:
    """Return a document of JSON in which one value, at any depth, is another."""
    if not table or not isinstance(table, dict | list) or draw.random() < 0.15:
        return draw.choice(ODD_VALUES)
    keys = [*table] if isinstance(table, dict) else [*range(len(table))]
    key = draw.choice(keys)
    changed = table.copy()
    changed[key] = with_odd_value(table[key], draw)
    return changed


def mutated(good: bytes, draw: random.Random) -> bytes:
    """Return bytes with a few changes: cut, repeated, replaced by odd ones."""
    if good[:1] in (b"{", b"[") and good.count(b"\n") < 2 and draw.random() < 0.7:
        return json.dumps(with_odd_value(json.loads(good), draw)).encode()
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


def deb(control: bytes | None = None) -> bytes:
    """Return a Debian package (deb(5))."""
    head, text = tarfile.TarInfo("./control"), b"Package: a\nVersion: 1\n"
    head.size = len(text)
    whole = head.tobuf() + text.ljust(512, b"\0") + bytes(1024)
    found = b"!<arch>\n"
    for name, data in {
        "debian-binary": b"2.0\n",
        "control.tar.xz": lzma.compress(whole if control is None else control),
        "data.tar.xz": lzma.compress(archive()),
    }.items():
        found += f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'100644':<8}{len(data):<10}`\n".encode()
        found += data + b"\n" * (len(data) % 2)
    return found


def loaded(file: Path) -> object:
    return tensors(file, str)


def recorded_run() -> ProgramRun:
    """Return a run of one step."""
    stream = Stream(rank="", worker="", process="M", argv=("t",), values=Path())
    part = MomentPart("loss", "ab" * 16, b"")
    stream.moments = [
        Moment(
            kind="step",
            label="1",
            number=0,
            parts=(part,),
            names={},
            losses=(0.5,),
            sample=(),
            wall=1,
            spent=0,
        )
    ]
    found = Evidence(items=[Item(("call", "t.py", 1, 0), 0.5, 1, 1, 1)])
    return ProgramRun(
        status=0, stdout=("x",), stderr=(), files=(), streams=[stream], seconds=1.0, last="", evidence=found
    )


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
        tree = image(Record(kept, "file", 0o644, "x"))
        return lambda data: check_tree(replace(tree, kept={**tree.kept, kept: data}), "x")

    packages = "opt/venv/lib/python3.11/site-packages"
    kernel = "root/.local/share/jupyter/kernels/python3/kernel.json"
    started = b'{"argv": ["python", "-m", "ipykernel_launcher"], "language": "python", "env": {"A": "b"}}'
    shell = b"export PATH=$HOME/bin:$PATH\nif [ -d x ]; then . x; fi\nalias a='b c'\n"

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
    recorded = folder / "x.repeat"
    write_baseline(recorded, recorded_run(), Ignored())
    pickled = pickle.dumps({"a": [1, 2.5, ("b", None)], "c": {1: b"d"}, "e": Path("f")}, 2)
    array = struct.pack("<Q", 61) + b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}abcd'

    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE a (b, c UNIQUE); INSERT INTO a VALUES (1, 'x'), (x'00', 2.5);")

    def recording(data: bytes) -> object:
        recorded.write_bytes(zlib.compress(data))
        return read_baseline(recorded)

    def checkpoint(data: bytes) -> object:
        with zipfile.ZipFile(folder / "a.pt", "w") as file:
            file.writestr("it/data.pkl", data)
        return tensors(folder / "a.pt", str)

    def package(data: bytes) -> object:
        (folder / "a.deb").write_bytes(data)
        store = cast("Store", SimpleNamespace(path=lambda _: folder / "a.deb"))
        named = replace(LOCK.debian[0], sha256=hashlib.sha256(data).hexdigest())
        (folder / "pool").mkdir(exist_ok=True)
        return archive_entry(named, store=store, folder=folder / "pool")

    return {
        "package": (deb(), package),
        "files of a package": (archive(), lambda d: package(deb(d))),
        "recording": (zlib.decompress(recorded.read_bytes()), recording),
        "packed recording": (recorded.read_bytes(), by_file("y.repeat", read_baseline)),
        "pickle": (pickled, checkpoint),
        "archive of tensors": (
            (checkpoint(pickled), (folder / "a.pt").read_bytes())[1],
            by_file("b.pt", loaded),
        ),
        "database": (database.serialize(), by_file("a.db", database_lines)),
        "safetensors": (array, by_file("a.safetensors", loaded)),
        "lock": (LOCK.dump().encode(), lambda d: parse_lock(d.decode("utf-8", "replace"), "x")),
        "record": (record, lambda d: LayerRecord.parse(d, "x")),
        "report": (json.dumps(a_report()).encode(), lambda d: SelfTestReport.parse(d, digest="x")),
        "toml": (project, lambda d: load_toml(d.decode("utf-8", "replace"))),
        "yaml": (b"a: [1, 2]\nb: {c: d}\n", lambda d: load_yaml(d.decode("utf-8", "replace"))),
        "manifest": (tree.kept["opt/reprobuild/manifest.tsv"], lambda d: [*read_manifest(d)]),
        "check": (tree.kept["opt/reprobuild/manifest.tsv"], checked("opt/reprobuild/manifest.tsv")),
        "cache": (b"glibc-ld.so.cache1.1" + bytes(99), checked("etc/ld.so.cache")),
        "shell": (shell, checked("root/.bashrc")),
        "users": (b"root:x:0:0::/root:/bin/sh\n", checked("etc/passwd")),
        "ldconfig": (b"/x\ninclude a*.conf\n", checked("etc/ld.so.conf")),
        "kernel": (started, checked(kernel)),
        "path file": (b"x\nimport y\n", checked(f"{packages}/a.pth")),
        "entry points": (b"[fsspec.specs]\na = b:c\n", checked(f"{packages}/a.dist-info/entry_points.txt")),
        "names": (b"hosts: files dns\n", checked("etc/nsswitch.conf")),
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


def readers_of_answers(folder: Path) -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """The same of what registries, other builders, programs in a container and strangers' archives give."""
    about = texts()
    vote = rebuilt(SUBJECT, a_lock().digest, MADE)
    key = write_key(folder, "team")
    policy = Policy(keys=[read_public_key(key.with_suffix(".pub"))])

    def judged(kind: str, policy: Policy = Policy()) -> Callable[[bytes], object]:  # noqa: B008 -- frozen
        """Read a document among good ones."""
        others: dict[str, bytes] = {str(kind): text for kind, text in about.items()}
        return lambda d: [
            judge({**others, kind: d}, SUBJECT, policy, MADE, lock) for lock in (None, a_lock())
        ]

    manifest = json.dumps(
        {"layers": [{"digest": DIGEST, "mediaType": "x"}], "subject": {"digest": DIGEST}}
    ).encode()
    index = json.dumps({"manifests": [{"digest": DIGEST, "artifactType": "x", "annotations": {}}]}).encode()

    def attached(listed: bytes | None, document: bytes | None) -> object:
        """Read what is attached to an image of a registry that answers so."""
        bytes_of = SimpleNamespace(
            referrers=lambda _: None,
            find_manifest=lambda _: index if listed is None else listed,
            read_manifest=lambda _: manifest if document is None else document,
            read_blob=lambda _: b"x",
        )
        return [*referrers(cast("Registry", bytes_of), DIGEST, ["x"])]

    small = layer(Entry(path="usr/bin/sh", content=b"x"), "etc/")
    (folder / "layout").mkdir()
    images = layout(folder / "layout", {"a:1": ([small], {"Env": ["A=1"], "Labels": {"a": "b"}})})
    docker = docker_archive(folder / "docker.tar", [small], {"Env": ["A=1"]}).read_bytes()
    oci = oci_archive(folder / "oci.tar", images).read_bytes()
    described = json.loads((images / "index.json").read_bytes())["manifests"][0]
    blob = images / "blobs" / "sha256" / described["digest"].partition(":")[2]

    def as_image(data: bytes) -> object:
        return read_tree(archive_members(buffered(data)), "x")

    def as_manifest(data: bytes) -> object:
        """Read a layout whose manifest is another, under its own digest."""
        place = folder / "other"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(images, place)
        digest = hashlib.sha256(data).hexdigest()
        (place / "blobs" / "sha256" / digest).write_bytes(data)
        return read_tree(layout_members(place, f"sha256:{digest}"), "x")

    def osv(data: bytes) -> object:
        (folder / "osv").mkdir(exist_ok=True)
        (folder / "osv" / "A-1.json").write_bytes(data)
        return find_vulnerabilities(str(folder / "osv"), [("a", "1.0")], requests.Session())

    advisory = b'{"id": "A-1", "modified": "2026-01-01T00:00:00Z", "affected": [{"package": {"ecosystem":'
    advisory += b' "PyPI", "name": "a"}, "versions": ["1.0"], "ranges": [{"type": "ECOSYSTEM", "events":'
    advisory += b' [{"introduced": "0"}, {"fixed": "2"}]}]}], "summary": "x", "aliases": ["CVE-1"]}'

    def chosen(data: bytes) -> object:
        with refused_as(RequestError, "x"):
            return canonical(data.decode("utf-8", "replace"), "x")

    machine = {"commit": "a", "cpu": "b", "torch": "c", "gpus": ["d"]}
    choices = json.dumps({"schema": 1, "kind": machine, "choices": {"a": {}}}).encode()
    paths = json.dumps({"artifacts": ["b"], "records": [["x", "file", 420, "c", ""]]}).encode()
    in_bundle = [Member.of(path, b"x") for path in ("README", "locks/pylock.toml")]
    listed = json.dumps(json.loads(Manifest(version="1", members=tuple(in_bundle)).dump())).encode()
    of_layers = LayerRecord(images={}, layers={}).with_image("a", "b" * 64, [RECORDED]).dump()
    return {
        **{kind: (about[kind], judged(kind)) for kind in about},
        "rebuild": (vote, judged("rebuild.x")),
        "signed document": (signed(about, key)["sbom"], judged("sbom", policy)),
        "referrers": (index, lambda d: attached(d, None)),
        "attachment": (manifest, lambda d: attached(None, d)),
        "docker archive": (docker, as_image),
        "oci archive": (oci, as_image),
        "image manifest": (blob.read_bytes(), as_manifest),
        "advisory": (advisory, osv),
        "kernel choices": (choices, chosen),
        "receipt": (json.dumps(table()).encode(), lambda d: parse_receipt(d, "x")),
        "bundle": (listed, lambda d: Manifest.parse(d, "x")),
        "layers": (of_layers, lambda d: LayerRecord.parse(d, "x")),
        "paths of a layer": (paths, lambda d: parse_paths(d, RECORDED)),
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # pickletools': to users it is not shown
def test_damaged_bytes_are_read_or_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    every = {**readers(tmp_path), **readers_of_answers(tmp_path)}
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
