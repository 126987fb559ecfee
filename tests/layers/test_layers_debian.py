"""A root as mmdebstrap leaves it → the base layer, without what differs by host or hour."""

from __future__ import annotations

import importlib.util
import io
import py_compile
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from reprobuild.errors import BuildError, HostError
from reprobuild.fetch.store import Store
from reprobuild.host import process
from reprobuild.host.home import Home
from reprobuild.layers.debian import normalise, write_debian
from reprobuild.oci.tar_writer import MTIME, LayerWriter
from support.locks import LOCK
from support.tars import long_header

Entry = tuple[str, bytes, dict[str, object], bytes]


def entry(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **fields: Any) -> Entry:
    return name, kind, {"mtime": 1_700_000_000, "uname": "root", "mode": 0o644, **fields}, content


def root(*entries: Entry) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, fields, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(content)
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return io.BytesIO(out.getvalue())


def layer(*entries: Entry) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    out = io.BytesIO()
    writer = LayerWriter(out)
    normalise(root(*entries), writer)
    writer.close()
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(out.getvalue())
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        found = {}
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            found[member.name] = (member, file.read() if file else b"")
        return found


def folder(name: str, mode: int = 0o755, **fields: Any) -> Entry:
    return entry(name, tarfile.DIRTYPE, mode=mode, **fields)


@pytest.mark.parametrize(
    "path",
    [
        *("etc/hostname", "etc/resolv.conf", "etc/machine-id", "etc/passwd-", "etc/shadow-", "etc/subuid-"),
        *("run/lock", "tmp/x", "var/log/dpkg.log", "var/log/apt/history.log", "var/cache/ldconfig/aux-cache"),
        *("var/cache/apt/pkgcache.bin", "var/cache/debconf/config.dat-old", "var/lib/dpkg/status-old"),
        *("var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend", "var/lib/apt/lists/x_Packages"),
    ],
)
def test_what_the_host_or_the_hour_left_is_dropped(path: str) -> None:
    assert path not in layer(entry(f"./{path}", content=b"x"))


@pytest.mark.parametrize(
    "path",
    [
        *("etc/passwd", "etc/shadow", "etc/hosts", "var/lib/dpkg/status", "var/cache/debconf/config.dat"),
        *("usr/share/run/x", "usr/lib/tmp/x", "var/lib/dpkg/info/libc6.list", "etc/ld.so.cache"),
    ],
)
def test_what_makes_the_system_is_kept(path: str) -> None:
    assert layer(entry(f"./{path}", content=b"x"))[path][1] == b"x"


def test_the_folders_of_what_is_dropped_stay() -> None:
    found = layer(folder("./var/log/"), folder("./var/log/apt/"), folder("./run/"), folder("./tmp/", 0o1777))
    assert {"var/log", "var/log/apt", "run", "tmp"} <= found.keys()
    assert found["tmp"][0].mode == 0o1777


def test_devices_are_left_to_the_runtime() -> None:
    null = entry("./dev/null", tarfile.CHRTYPE, devmajor=1, devminor=3)
    assert layer(folder("./dev/"), null).keys() - {"."} == {"dev"}


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_elsewhere_is_refused(kind: bytes) -> None:
    with pytest.raises(BuildError, match="usr/lib/odd"):
        layer(entry("./usr/lib/odd", kind))


def test_a_header_of_any_length_is_not_read_into_memory() -> None:
    with pytest.raises(BuildError, match=r"a header has 1,073,741,824 bytes"):
        normalise(io.BytesIO(long_header()), LayerWriter(io.BytesIO()))


def test_a_hard_link_becomes_a_file_wherever_the_first_name_stands() -> None:
    first = entry("./usr/bin/perl", content=b"perl", mode=0o755)
    second = entry("./bin/perl5", tarfile.LNKTYPE, linkname="./usr/bin/perl", mode=0o755)
    found = layer(first, second)
    assert found["bin/perl5"][1] == found["usr/bin/perl"][1] == b"perl"
    assert found["bin/perl5"][0].isreg()
    assert list(found) == sorted(found)


def test_owners_and_modes_stay_and_time_and_names_go() -> None:
    found = layer(
        entry("./usr/bin/su", content=b"su", mode=0o4755),
        entry("./etc/shadow", content=b"x", mode=0o640, gid=42, gname="shadow"),
        folder("./var/mail/", 0o2775, gid=8),
    )
    assert found["usr/bin/su"][0].mode == 0o4755
    assert (found["etc/shadow"][0].mode, found["etc/shadow"][0].gid) == (0o640, 42)
    assert (found["var/mail"][0].mode, found["var/mail"][0].gid) == (0o2775, 8)
    assert {(m.mtime, m.uname, m.gname) for m, _ in found.values()} == {(MTIME, "", "")}


def test_links_stay() -> None:
    link = layer(entry("./bin", tarfile.SYMTYPE, linkname="usr/bin"))["bin"][0]
    assert (link.issym(), link.linkname) == (True, "usr/bin")


def test_the_order_of_the_root_s_tar_does_not_matter() -> None:
    entries = [entry(f"./usr/share/{name}", content=name.encode()) for name in "dacb"]
    digests = set()
    for order in (entries, entries[::-1]):
        writer = LayerWriter(io.BytesIO())
        normalise(root(*order), writer)
        digests.add(writer.close().digest)
    assert len(digests) == 1


def test_sources_name_no_mirror() -> None:
    found = layer(entry("./etc/apt/sources.list", content=b"deb copy:///home/somebody/pool ./\n"))
    assert b"somebody" not in found["etc/apt/sources.list"][1]


def test_bytecode_needs_no_time_stamp_and_is_imported(tmp_path: Path) -> None:
    source = tmp_path / "mod.py"
    source.write_text("VALUE = 1\n")
    compiled = Path(
        str(py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP))
    )
    path = "usr/lib/python3/dist-packages/__pycache__/mod.cpython-311.pyc"
    data = layer(entry(f"./{path}", content=compiled.read_bytes()))[path][1]
    assert data[4:16] == (1).to_bytes(4, "little") + bytes(8)
    assert data[16:] == compiled.read_bytes()[16:]
    compiled.write_bytes(data)
    # Another source, of another time: it is not looked at.
    source.write_text("VALUE = 2222\n")
    spec = importlib.util.spec_from_file_location("mod", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.VALUE == 1
    assert compiled.read_bytes() == data


def test_bytecode_by_hash_stays_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "mod.py"
    source.write_text("VALUE = 1\n")
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    content = Path(str(py_compile.compile(str(source), invalidation_mode=mode))).read_bytes()
    assert layer(entry("./usr/lib/x.pyc", content=content))["usr/lib/x.pyc"][1] == content


def test_without_mmdebstrap_the_host_is_to_blame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "which", lambda _: None)
    home = Home(tmp_path)
    with pytest.raises(HostError, match="mmdebstrap is not installed"):
        write_debian(LOCK, Store(home), home, LayerWriter(io.BytesIO()))
