"""Layers that no builder writes, named ones and drawn ones; and their files as an engine unpacked them.

The reading side is Python's own tarfile and os, nothing of reprobuild: it is what our reader is held to.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import random
import stat
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Literal

Layers = Sequence[bytes]

Shown = Mapping[str, tuple[str, int, str, str, str]]
"""Kind, mode, owner, content and attributes of each path, as `tar_writer.Record` has them."""

CAPABILITY = b"\x01\x00\x00\x02\x00\x20\x00\x00" + bytes(12)


@dataclass(frozen=True, kw_only=True)
class Odd:
    """One entry of a layer, in a form of our choice."""

    path: str
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    content: bytes = b""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    form: Literal[0, 1, 2] = 2
    """As in tarfile: 0 of POSIX 1988, 1 of GNU, 2 with PAX headers."""
    pax: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[bytearray], None] | None = None
    """Changes the last header block, whose checksum is made anew."""

    def blocks(self) -> bytes:
        """Return header and content."""
        info = tarfile.TarInfo(self.path)
        info.type, info.linkname, info.mode = self.kind, self.target, self.mode
        info.uid, info.gid, info.size = self.uid, self.gid, len(self.content)
        info.pax_headers = dict(self.pax)
        head = bytearray(info.tobuf(self.form, "utf-8", "surrogateescape"))
        if self.change is not None:
            block = head[-512:]
            self.change(block)
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
            head[-512:] = block
        return bytes(head) + self.content + bytes(-len(self.content) % 512)


def layer(*entries: Odd | str, end: bytes = bytes(1024)) -> bytes:
    """Return a layer's tar; a bare path is a file with its name in it, with a slash at its end a folder."""
    return b"".join(_odd(each).blocks() for each in entries) + end


def _odd(entry: Odd | str) -> Odd:
    if isinstance(entry, Odd):
        return entry
    if entry.endswith("/"):
        return Odd(path=entry, kind=tarfile.DIRTYPE, mode=0o755)
    return Odd(path=entry, content=entry.encode())


def hard(path: str, target: str, *, mode: int = 0o644, uid: int = 0) -> Odd:
    """Return a hard link, by default with the rights of a plain file."""
    return Odd(path=path, kind=tarfile.LNKTYPE, target=target, mode=mode, uid=uid)


def soft(path: str, target: str) -> Odd:
    """Return a symbolic link."""
    return Odd(path=path, kind=tarfile.SYMTYPE, target=target, mode=0o777)


def _stored(start: int, new: bytes) -> Callable[[bytearray], None]:
    def change(block: bytearray) -> None:
        block[start : start + len(new)] = new

    return change


PRIVATE = Odd(path="a/", kind=tarfile.DIRTYPE, mode=0o700)
LONG = "n" * 200
DEEP = "/".join(["d" * 60] * 5)

NAMED: Mapping[str, Layers] = {
    "a file": [layer("a/", "a/b")],
    "a hard link": [layer("x", hard("y", "x"), hard("z", "y"))],
    "a hard link before its file": [layer(hard("y", "x"), "x")],
    "a hard link to the layer below": [layer("x"), layer(hard("y", "x"))],
    "a hard link to a file that a later layer replaces": [layer("x", hard("y", "x")), layer(Odd(path="x"))],
    "a hard link whose file is replaced in its layer": [
        layer("x", hard("y", "x"), Odd(path="x", content=b"2"))
    ],
    "a hard link to itself": [layer("x", hard("x", "x"))],
    "a hard link to a folder": [layer("a/", hard("b", "a"))],
    "a hard link to a link": [layer("x", soft("l", "x"), hard("h", "l", mode=0o777))],
    "a hard link with setuid": [layer("x", hard("y", "x", mode=0o4755))],
    "a hard link with another owner": [layer("x", hard("y", "x", uid=5))],
    "a hard link with a leading slash": [layer("x", hard("y", "/x"))],
    "a hard link with dots": [layer("x", hard("y", "./x"))],
    "a hard link that leads out": [layer("x", hard("y", "../x"))],
    "a hard link that removes": [layer("x"), layer(hard(".wh.x", "x"))],
    "a hard link with content": [layer("x", Odd(path="y", kind=tarfile.LNKTYPE, target="x", content=b"abc"))],
    "a whiteout": [layer("a/", "a/b", "a/c"), layer("a/.wh.b")],
    "a whiteout of nothing": [layer("a/"), layer("a/.wh.b")],
    "a whiteout of a folder": [layer("a/", "a/b/", "a/b/c"), layer("a/.wh.b")],
    "a whiteout of a folder that is made anew": [layer("a/", "a/b"), layer(".wh.a", "a/", "a/c")],
    "a whiteout after its folder": [layer("a/", "a/b"), layer("a/", "a/c", ".wh.a")],
    "a whiteout and a file": [layer("x"), layer(".wh.x", Odd(path="x", content=b"2"))],
    "a whiteout after a file": [layer("x"), layer(Odd(path="x", content=b"2"), ".wh.x")],
    "a whiteout after a file, in the lowest layer": [layer("a/", "a/b", "a/.wh.b")],
    "a whiteout after a hard link": [layer("x"), layer("y", hard("x", "y"), ".wh.x")],
    "a whiteout of a link's name": [layer("a/", "a/x", soft("l", "a")), layer(".wh.l")],
    "a whiteout through a link": [layer("a/", "a/x", soft("l", "a")), layer("l/.wh.x")],
    "a whiteout that is a folder": [layer("a/", "a/x"), layer(".wh.a/")],
    "a whiteout that is a link": [layer("a/", "a/x"), layer(soft(".wh.a", "b"))],
    "a whiteout below a whiteout": [layer("a/", "a/x"), layer(".wh.a", "a/.wh.x")],
    "a whiteout with no name": [layer("x"), layer(".wh.")],
    "a whiteout of the parent": [layer("a/", "x"), layer("a/.wh...")],
    "a whiteout of a whiteout": [layer("x"), layer(".wh..wh.x")],
    "a whiteout in the lowest layer": [layer("x", ".wh.y")],
    "a whiteout that a later layer fills": [layer("x"), layer(".wh.x"), layer("x")],
    "a whiteout of one of two names": [layer("x", hard("y", "x")), layer(".wh.x")],
    "aufs's folders": [layer("x"), layer(".wh..wh.plnk/", ".wh..wh.plnk/1", ".wh..wh.aufs")],
    "an opaque folder": [layer("a/", "a/b", "a/c/", "a/c/d"), layer("a/", "a/.wh..wh..opq", "a/e")],
    "an opaque folder, marked last": [layer("a/", "a/b"), layer("a/", "a/e", "a/.wh..wh..opq")],
    "an opaque folder, marked first": [layer("a/", "a/b"), layer("a/.wh..wh..opq", "a/", "a/e")],
    "an opaque folder without itself": [layer("a/", "a/b"), layer("a/.wh..wh..opq")],
    "an opaque folder that was none": [layer("x"), layer("a/", "a/.wh..wh..opq", "a/b")],
    "an opaque file": [layer("a"), layer("a/.wh..wh..opq")],
    "an opaque root": [layer("x", "a/", "a/b"), layer(".wh..wh..opq", "y")],
    "an opaque folder in the lowest layer": [layer("a/", "a/.wh..wh..opq", "a/b")],
    "a file in place of a folder": [layer("a/", "a/b"), layer(Odd(path="a", content=b"2"))],
    "a folder in place of a file": [layer("a"), layer("a/", "a/b")],
    "a link in place of a folder": [layer("a/", "a/b", "c/"), layer(soft("a", "c"))],
    "a folder in place of a link": [layer("a/", "a/b", soft("l", "a")), layer("l/", "l/c")],
    "a file below a link": [layer("a/", soft("l", "a")), layer("l/c")],
    "a file below a link of its layer": [layer("a/", soft("l", "a"), "l/c")],
    "a file below a file": [layer("a", "a/b")],
    "a folder twice": [layer("a/", "a/b", Odd(path="a/", kind=tarfile.DIRTYPE, mode=0o700))],
    "a folder again above": [
        layer("a/", "a/b"),
        layer(Odd(path="a/", kind=tarfile.DIRTYPE, mode=0o1777, uid=3)),
    ],
    "a file twice": [layer("x", Odd(path="x", content=b"2", mode=0o600))],
    "a file, then a folder": [layer("a", "a/", "a/b")],
    "a folder, then a file": [layer("a/", "a/b", "a")],
    "a folder, then a link": [layer("a/", "a/b", "c/", soft("a", "c"))],
    "a link, then a folder": [layer("c/", soft("a", "c"), "a/")],
    "a file before its folder": [layer("a/b", Odd(path="a/", kind=tarfile.DIRTYPE, mode=0o700))],
    "a folder that only a whiteout names": [layer("x"), layer("a/b/.wh.c")],
    "a folder that only a whiteout of the lowest layer names": [layer("a/b/.wh.c", "x")],
    "a folder that only its mark names": [layer("x"), layer("a/b/.wh..wh..opq")],
    "a file in a folder that has other rights below": [layer(PRIVATE, "a/b"), layer("a/c")],
    "a file in a folder of another owner below": [layer(replace(PRIVATE, mode=0o755, uid=5)), layer("a/c")],
    "a file in a folder that has an attribute below": [
        layer(replace(PRIVATE, mode=0o755, pax={"SCHILY.xattr.user.note": "yes"})),
        layer("a/c"),
    ],
    "a folder in a folder that has other rights below": [layer(PRIVATE, "a/b"), layer("a/c/")],
    "a whiteout in a folder that has other rights below": [layer(PRIVATE, "a/b"), layer("a/.wh.b")],
    "a mark in a folder that has other rights below": [layer(PRIVATE, "a/b/"), layer("a/b/.wh..wh..opq")],
    "a mark of a folder that has other rights below": [layer(PRIVATE, "a/b/"), layer("a/.wh..wh..opq")],
    "a folder that no layer names": [layer("a/b/c")],
    "a folder that only the second layer names": [
        layer("a/b"),
        layer(Odd(path="a", kind=tarfile.DIRTYPE, mode=0o711)),
    ],
    "modes": [
        layer(*(Odd(path=f"m{mode:o}", mode=mode) for mode in (0, 0o777, 0o4755, 0o2755, 0o1644, 0o7777)))
    ],
    "folders' modes": [
        layer(
            *(Odd(path=f"m{mode:o}", kind=tarfile.DIRTYPE, mode=mode) for mode in (0, 0o2775, 0o1777, 0o7777))
        )
    ],
    "more bits than a mode has": [layer(Odd(path="x", mode=0o100644), Odd(path="y", mode=0o7777777))],
    "owners": [layer(Odd(path="x", uid=1000, gid=100), Odd(path="y", uid=3_000_000, gid=65534))],
    "setuid of another owner": [
        layer(Odd(path="x", uid=1000, mode=0o4755), Odd(path="y", gid=7, mode=0o2755))
    ],
    "capabilities": [
        layer(
            Odd(path="x", pax={"SCHILY.xattr.security.capability": CAPABILITY.decode("latin-1")}, mode=0o755)
        )
    ],
    "an attribute of the user's": [layer(Odd(path="x", pax={"SCHILY.xattr.user.note": "yes"}))],
    "an attribute of a folder": [
        layer(Odd(path="a/", kind=tarfile.DIRTYPE, pax={"SCHILY.xattr.user.note": "yes"}))
    ],
    "an attribute of overlayfs": [
        layer("a/", "a/b"),
        layer(Odd(path="a/", kind=tarfile.DIRTYPE, pax={"SCHILY.xattr.trusted.overlay.opaque": "y"})),
    ],
    "an attribute in libarchive's form": [layer(Odd(path="x", pax={"LIBARCHIVE.xattr.user.note": "eWVz"}))],
    "an attribute that the next file lacks": [
        layer(Odd(path="x", pax={"SCHILY.xattr.user.note": "yes"}), Odd(path="x", content=b"2"))
    ],
    "a sparse file of GNU": [layer(Odd(path="x", kind=tarfile.GNUTYPE_SPARSE, form=1))],
    "a sparse file of pax": [
        layer(Odd(path="x", content=b"0\n", pax={"GNU.sparse.major": "1", "GNU.sparse.realsize": "9999"}))
    ],
    "long names of pax": [layer(LONG, f"{DEEP}/x", soft("l", LONG), hard("h", LONG))],
    "long names of GNU": [
        layer(*(replace(_odd(e), form=1) for e in (LONG, f"{DEEP}/x", soft("l", LONG), hard("h", LONG))))
    ],
    "a name with a prefix": [layer(Odd(path=f"{'p' * 90}/{'q' * 90}", form=0))],
    "a name of 255 bytes": [layer("n" * 255)],
    "a name of 256 bytes": [layer("n" * 256)],
    "names that are not ASCII": [layer("ä", "日本", "a\nb", "a\tb", " ", "a\\b", "a*?[")],
    "a name that is not UTF-8": [layer(Odd(path="x\udcff\udcfe", form=1))],
    "two names of one look": [layer("\u00e9", "e\u0301")],
    "names with dots": [layer("./a/", "./a/./b", "a//c", "/d", "e/.")],
    "a name that leads out": [layer("a/", "a/../b")],
    "a name that leads out at once": [layer("../b")],
    "the root": [layer(Odd(path="./", kind=tarfile.DIRTYPE, mode=0o700, uid=5), "x")],
    "the root as a file": [layer(Odd(path=".", content=b"x"), "y")],
    "a file with a slash": [layer(Odd(path="a/", content=b"x"))],
    "a file of old tools": [layer(Odd(path="x", kind=tarfile.AREGTYPE, content=b"x"))],
    "a folder of old tools": [layer(Odd(path="a/", kind=tarfile.AREGTYPE))],
    "a contiguous file": [layer(Odd(path="x", kind=tarfile.CONTTYPE, content=b"x"))],
    "a folder with a size": [layer(Odd(path="a/", kind=tarfile.DIRTYPE, content=b"x" * 600), "b")],
    "a link with a size": [layer(Odd(path="l", kind=tarfile.SYMTYPE, target="x", content=b"x" * 600), "b")],
    "a link to itself": [layer(soft("l", "l"))],
    "a link that leads out": [layer(soft("l", "../../../../etc/passwd"), soft("m", "/etc/shadow"))],
    "an empty link": [layer(soft("l", ""))],
    "a pipe": [layer(Odd(path="p", kind=tarfile.FIFOTYPE, mode=0o600))],
    "a device": [layer(Odd(path="d", kind=tarfile.CHRTYPE, change=_stored(329, b"0000001\x000000003")))],
    "a node of overlayfs": [
        layer("x"),
        layer(Odd(path="x", kind=tarfile.CHRTYPE, change=_stored(329, b"0000000\x000000000"))),
    ],
    "an unknown type": [layer(Odd(path="x", kind=b"Z", content=b"x"), "y")],
    "a volume's label": [layer(Odd(path="x", kind=b"V"), "y")],
    "a size in pax": [layer(Odd(path="x", content=b"abc", pax={"size": "3"}))],
    "a larger size in pax": [layer(Odd(path="x", content=b"abc" * 200, pax={"size": "5"}), "y")],
    "a size in GNU's binary form": [
        layer(Odd(path="x", content=b"abc", change=_stored(124, b"\x80" + bytes(10) + b"\3")))
    ],
    "an owner in GNU's binary form": [
        layer(Odd(path="x", change=_stored(108, b"\x80" + bytes(5) + b"\1\0")))
    ],
    "a negative owner": [layer(Odd(path="x", change=_stored(108, b"\xff" * 8)))],
    "an owner without an end": [layer(Odd(path="x", change=_stored(108, b"00000017")))],
    "an owner with blanks": [layer(Odd(path="x", change=_stored(108, b"   17 \0\0")))],
    "a path in pax": [layer(Odd(path="x", pax={"path": "y"}))],
    "a path in pax that is a folder": [layer(Odd(path="x", pax={"path": "y/"}, content=b""))],
    "a link's path in pax": [
        layer("x", Odd(path="l", kind=tarfile.SYMTYPE, target="a", pax={"linkpath": "x"}))
    ],
    "owners in pax": [layer(Odd(path="x", pax={"uid": "4", "gid": "5", "uname": "root"}))],
    "another charset": [layer(Odd(path="x", pax={"hdrcharset": "BINARY"}))],
    "a global header": [layer(Odd(path="g", kind=b"g", content=b"13 path=evil\n"), "x")],
    "a global comment": [layer(Odd(path="g", kind=b"g", content=b"14 comment=abc\n"[:14] + b"\n"), "x")],
    "an end without zeros": [layer("x", end=b"")],
    "one block of zeros": [layer("x", end=bytes(512))],
    "a block of zeros inside": [layer("x", end=bytes(512)) + layer("y")],
    "another tar behind it": [layer("x") + layer("y")],
    "rubbish behind it": [layer("x") + b"rubbish" * 200],
    "no entry": [layer(), layer("x")],
    "a layer twice": [layer("a/", "a/b"), layer(".wh.a"), layer("a/", "a/b")],
    "a magic of old tools": [layer(Odd(path="x", change=_stored(257, bytes(8))))],
    "a prefix beside an old magic": [layer(Odd(path="x", change=_stored(257, bytes(88) + b"p")))],
}
"""By what is odd in them."""

_NAMES = ("a", "a/b", "a/b/c", "a/d", "e", "e/f", "l", "l/m", "g", "h")
_FORMS: Sequence[Literal[0, 1, 2]] = (2, 1, 0)


def drawn(seed: int) -> Layers:
    """Return one to three layers of few names, so that they meet in every way."""
    dice = random.Random(seed)
    return [layer(*_drawn_entries(dice)) for _ in range(dice.randint(1, 4))]


def _drawn_entries(dice: random.Random) -> list[Odd]:
    count = dice.randint(1, 6)
    # Docker 20.10 takes no layer that names a path twice; the others do.
    often = dice.random() < 0.2
    paths = [dice.choice(_NAMES) for _ in range(count)] if often else dice.sample(_NAMES, count)
    return [_draw(dice, path) for path in (paths if dice.random() < 0.3 else sorted(paths))]


def _draw(dice: random.Random, path: str) -> Odd:
    entry = Odd(
        path=path,
        content=b"",
        mode=dice.choice((0o644, 0o644, 0o644, 0o755, 0o4755, 0o1777, 0)),
        uid=dice.choice((0, 0, 0, 1000)),
        gid=dice.choice((0, 0, 0, 7)),
        form=dice.choice(_FORMS),
        pax=dice.choice(({}, {}, {}, {}, {"SCHILY.xattr.user.note": "yes"})),
    )
    if entry.pax:
        entry = replace(entry, form=2)
    folder, _, base = path.rpartition("/")
    kind = dice.choices(("file", "dir", "hard", "soft", "gone", "opaque"), (30, 30, 15, 10, 12, 8))[0]
    match kind:
        case "dir":
            return replace(entry, kind=tarfile.DIRTYPE)
        case "hard":
            # Mostly as tools write it: the header of the file itself.
            plain = replace(entry, mode=0o644, uid=0, gid=0, pax={})
            return replace(
                dice.choice((plain, plain, entry)), kind=tarfile.LNKTYPE, target=dice.choice(_NAMES)
            )
        case "soft":
            target = dice.choice((*_NAMES, "/a", "../a", "."))
            return replace(entry, kind=tarfile.SYMTYPE, target=target, mode=0o777, pax={})
        case "gone":
            return replace(entry, path=f"{folder}/.wh.{base}".lstrip("/"), pax={})
        case "opaque":
            return replace(entry, path=f"{path}/.wh..wh..opq", pax={})
    spelled = dice.choice((path, path, f"./{path}", f"/{path}", path.replace("/", "//")))
    return replace(entry, path=spelled, content=dice.randbytes(dice.randint(0, 3)))


def archive(file: Path, images: Mapping[str, Layers], *, packed: bool = False) -> Path:
    """Write images by name as ``docker save`` does, several in one."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    manifest, done = [], set[str]()
    with tarfile.open(file, "w") as tar:
        for name, layers in images.items():
            blobs = [gzip.compress(data, 1, mtime=0) if packed else data for data in layers]
            ids = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers]
            config = {
                "architecture": machine,
                "os": "linux",
                "config": {"Labels": {"name": name}},
                "rootfs": {"type": "layers", "diff_ids": ids},
            }
            text = json.dumps(config).encode()
            files = {f"{hashlib.sha256(data).hexdigest()}/layer.tar": data for data in blobs}
            paths = [f"{hashlib.sha256(data).hexdigest()}/layer.tar" for data in blobs]
            files[own := f"{hashlib.sha256(text).hexdigest()}.json"] = text
            for path, data in files.items():
                if path not in done:
                    _add(tar, path, data)
                    done.add(path)
            manifest.append({"Config": own, "RepoTags": [name], "Layers": paths})
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return file


def _add(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    info = tarfile.TarInfo(path)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


_HOST = ("security.selinux", "security.ima", "security.evm", "trusted.overlay.", "user.overlay.")


def lines(attributes: Iterable[tuple[str, bytes]]) -> str:
    """Return extended attributes as `tar_fields.attribute_lines` does."""
    return "\n".join(
        f"{name}={value.hex()}" for name, value in sorted(attributes) if not name.startswith(_HOST)
    )


def exported(file: IO[bytes]) -> Shown:
    """Return the files in what ``docker export`` wrote."""
    found: dict[str, tuple[str, int, str, str, str]] = {}
    with tarfile.open(fileobj=file, mode="r|", errors="surrogateescape") as tar:
        for info in tar:
            path, owner, mode = info.name.strip("/"), f"{info.uid}:{info.gid}", info.mode & 0o7777
            named = "SCHILY.xattr."
            more = lines(
                (key.removeprefix(named), value.encode("utf-8", "surrogateescape"))
                for key, value in info.pax_headers.items()
                if key.startswith(named)
            )
            if info.islnk():
                found[path] = found[info.linkname.strip("/")]
            elif info.isreg():
                data = tar.extractfile(info)
                assert data is not None
                found[path] = "file", mode, owner, hashlib.sha256(data.read()).hexdigest(), more
            elif info.isdir():
                found[path] = "dir", mode, owner, "-", more
            elif info.issym():
                found[path] = "link", 0o777, owner, info.linkname, more
            else:
                found[path] = "other", mode, owner, "", more
    return found


def mounted(root: Path) -> Shown:
    """Return the files below a folder."""
    found: dict[str, tuple[str, int, str, str, str]] = {}
    for folder, folders, files in os.walk(root):
        for each in (*folders, *files):
            path = Path(folder, each)
            try:
                about = path.lstat()
            except FileNotFoundError:
                continue  # a whiteout in a folder of one layer alone is listed by overlayfs, and is not there
            mode, owner = stat.S_IMODE(about.st_mode), f"{about.st_uid}:{about.st_gid}"
            attributes = os.listxattr(path, follow_symlinks=False)
            more = lines((name, os.getxattr(path, name, follow_symlinks=False)) for name in attributes)
            kind, content = "other", ""
            if path.is_symlink():
                kind, mode, content = "link", 0o777, str(path.readlink())
            elif path.is_dir():
                kind, content = "dir", "-"
            elif path.is_file():
                kind, content = "file", hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(root))] = kind, mode, owner, content, more
    return found
