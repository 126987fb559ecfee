"""The content of binary files as lines of text, which show a time beside a result. Untrusted bytes.

Archives (``.zip``, ``.tar``, ``.gz``) by their members, pickles by their opcodes, arrays of NumPy by their
numbers, PNG pictures by their chunks, and all else by its texts and by the measured numbers that stand in it.
No two contents have the same lines, but for an archive's times and the sizes of its compressed members.
Nothing is executed or unpickled.
"""

from __future__ import annotations

import base64
import bz2
import hashlib
import io
import lzma
import math
import pickletools
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from ..host.zip_directory import hold_whole, open_zip
from . import png_chunks
from .event_files import bounded, float32
from .evidence import EXACT, Evidence
from .measured_words import SPANS, measured_words
from .pickle_structure import OBJECTS, Pickle, array_behind, date_of
from .text_tokens import digits

MOST_BYTES = 16 << 20
"""Of all that is in a file."""
MOST_LINES = 100_000
_MOST_SCANNED = 4 << 20
"""Bytes in which measured numbers are looked for."""
_MOST_NUMBERS = 4096
"""Of an array that is written out."""
_MOST_DEPTH = 4
_TEXT = re.compile(rb"[\t\x20-\x7e]{6,}")
_LONG_TEXT = re.compile(rb"[\t\x20-\x7e]{16,}")
"""A text, of which eight characters could be read as a number."""
_PICKLED = re.compile(r'"(gA[A-Za-z0-9+/]{30,}={0,2})"')
"""A pickle in a text, as Stable-Baselines3 has it."""
_LETTERS = bytes.maketrans(b"0123456789abcdef", b"ghijklmnopqrstuv")
"""Bytes are written without digits, which could be taken for a measured number."""
_GZIP_NAME, _GZIP_READ = 8, 9
"""Flags of a header: it has the file's name, and those whose meaning is read (RFC 1952)."""
_LIKELY_SINGLE = 1e-3
"""How many words of four bytes may be like a measured number by chance, where any are looked for."""
_SERIALIZATION = re.compile(rb"\d{40}")
"""What torch makes of a checkpoint's other members, by their names and checksums, and keeps in one more."""
# Of damaged content the readers raise any of these; it then counts by its bytes.
_FAULTS = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, IndexError, RuntimeError),
    *(struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, OverflowError),
    *(SyntaxError, MemoryError, NotImplementedError, StopIteration),
)


def value_lines(content: bytes, evidence: Evidence) -> tuple[str, ...] | None:
    """Return what a file of bytes holds; None: it has too much, or is damaged."""
    try:
        words = measured_words(evidence, has_spans=any(kind in content for kind in SPANS))
        return bounded(_Reader(words).lines(content, "", 0), "lines", MOST_LINES)
    except _FAULTS:
        return None


@dataclass
class _Reader:
    words: Mapping[bytes, str]
    """The bytes of each measured number, with how it is written."""
    left: int = MOST_BYTES
    """Bytes that may still be unpacked."""

    def lines(self, data: bytes, name: str, depth: int) -> Iterator[str]:
        """Yield the lines of something that is called ``name``."""
        if depth > _MOST_DEPTH:
            raise ValueError("archives in archives")
        for reader in (self._packed, self._zip, self._tar, self._array, self._pickle, self._picture):
            found = reader(data, name, depth)
            if found is not None:
                yield from found
                return
        yield from self._text(data, name) if _is_text(data) else self._bytes(data, name)

    def _take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise ValueError("too large")

    def _packed(self, data: bytes, name: str, depth: int) -> Iterator[str] | None:
        """Read what was packed by itself, whose header may have a time."""
        if data[:3] == b"\x1f\x8b\x08" and not data[3] & ~_GZIP_READ:
            kind, unpacker = "gzip", zlib.decompressobj(31)
        elif data[:2] in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
            kind, unpacker = "zlib", zlib.decompressobj()
        elif data[:3] == b"BZh":
            return self._unpacked("bzip2", bz2.BZ2Decompressor(), data, name, depth)
        elif data[:6] == b"\xfd7zXZ\0":
            return self._unpacked("xz", lzma.LZMADecompressor(lzma.FORMAT_XZ), data, name, depth)
        else:
            return None
        try:
            inner = unpacker.decompress(data, self.left + 1)
        except zlib.error:
            return None
        if not unpacker.eof or unpacker.unconsumed_tail:
            return None
        told = f"{name}{kind}"
        if kind == "gzip":
            told = f"{told} {_shown(data[3:4])} {_shown(data[8:10])}"
            if data[3] & _GZIP_NAME:
                told = f"{told} {data[10 : data.index(0, 10)].decode('latin-1')!r}"
        return self._inner(told, inner, unpacker.unused_data, name, depth)

    def _unpacked(self, kind: str, unpacker: bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes,
                  name: str, depth: int) -> Iterator[str] | None:  # fmt: skip
        inner = unpacker.decompress(data, self.left + 1)
        if not unpacker.eof:
            return None
        return self._inner(f"{name}{kind}", inner, unpacker.unused_data, name, depth)

    def _inner(self, told: str, inner: bytes, behind: bytes, name: str, depth: int) -> Iterator[str]:
        self._take(len(inner))
        yield told
        yield from self.lines(inner, name, depth + 1)
        if behind:
            yield f"{name}behind it:"
            yield from self.lines(behind, name, depth + 1)

    def _zip(self, data: bytes, name: str, depth: int) -> Iterator[str] | None:
        if data[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
            return None
        return self._zip_lines(data, name, depth)

    def _zip_lines(self, data: bytes, name: str, depth: int) -> Iterator[str]:
        with open_zip(io.BytesIO(data)) as archive:
            hold_whole(archive)
            members = archive.infolist()
            yield f"{name}zip {_shown(archive.comment)}"
            inside = [member.filename.partition("/")[2] for member in members]
            torchs = "data.pkl" in inside
            for member, short in zip(members, inside, strict=True):
                self._take(member.file_size)
                told = f"{name}{short if torchs else member.filename}: "
                kind = f"{member.compress_type} {member.external_attr} {_shown(member.comment)}"
                yield f"{told}member {kind.translate(_NO_DIGITS)}"
                content = archive.read(member)
                made = torchs and short == ".data/serialization_id" and _SERIALIZATION.fullmatch(content)
                yield from () if made else self.lines(content, told, depth + 1)

    def _tar(self, data: bytes, name: str, depth: int) -> Iterator[str] | None:
        if data[257:262] != b"ustar":
            return None
        return self._tar_lines(data, name, depth)

    def _tar_lines(self, data: bytes, name: str, depth: int) -> Iterator[str]:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            yield f"{name}tar"
            end = 0
            for member in archive:
                pax = {key: value for key, value in member.pax_headers.items() if key not in _PAX_TIMES}
                owner = f"{member.uid} {member.gid} {member.uname} {member.gname}"
                kind = f"{member.type!r} {member.mode} {owner} {member.devmajor} {member.devminor}"
                told = f"{name}{member.name}: "
                yield f"{told}member {kind.translate(_NO_DIGITS)} {member.linkname} {sorted(pax.items())}"
                if member.issparse():
                    raise ValueError("a file with holes")
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    self._take(member.size)
                    yield from self.lines(file.read(), told, depth + 1)
                end = archive.offset
            if data[end:].strip(b"\0"):
                raise ValueError("bytes behind it")

    def _array(self, data: bytes, name: str, _depth: int) -> Iterator[str] | None:
        """Read an array in NumPy's own format:
        https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
        """
        if data[:6] != b"\x93NUMPY" or data[6] not in (1, 2, 3):
            return None
        size = 2 if data[6] == 1 else 4
        at = 8 + size + int.from_bytes(data[8 : 8 + size], "little")
        kind = re.search(rb"'descr': '([^']+)'", data[8 + size : at])
        return self._array_lines(data[:at], data[at:], kind[1].decode() if kind else "", name)

    def _array_lines(self, head: bytes, data: bytes, kind: str, name: str) -> Iterator[str]:
        yield f"{name}array {_shown(head)}"
        shown = _NUMBERS.get(kind)
        if kind[:2] in ("<U", "|S") and kind[2:].isdecimal() and 0 < int(kind[2:]) <= MOST_BYTES:
            width = int(kind[2:]) * (4 if kind[1] == "U" else 1)
            codec = "utf-32-le" if kind[1] == "U" else "latin-1"
            for at in range(0, min(len(data), _MOST_NUMBERS * width), width):
                yield from _quoted(name, data[at : at + width].decode(codec))
            yield from self._bytes(data[_MOST_NUMBERS * width :], name)
        elif shown is not None and len(data) <= _MOST_NUMBERS * shown[0]:
            size, show = shown
            for at in range(0, len(data) - size + 1, size):
                yield f"{name}{show(data[at : at + size])}"
            yield from self._bytes(data[len(data) - len(data) % size :], name)
        else:
            yield from self._bytes(data, name)

    def _pickle(self, data: bytes, name: str, _depth: int) -> Iterator[str] | None:
        if data[:1] != b"\x80" or data[1:2] not in (b"\2", b"\3", b"\4", b"\5") or data[-1:] != b".":
            return None
        try:
            file = io.BytesIO(data)
            found = [*islice(self._opcodes(file, name), MOST_LINES + 1)]
        except (ValueError, IndexError, KeyError, UnicodeDecodeError, RecursionError):
            return None
        return iter(found) if len(found) <= MOST_LINES and file.tell() == len(data) else None

    def _opcodes(self, file: io.BytesIO, name: str) -> Iterator[str]:
        """Yield the values of a pickle that begins there. Raises what `_pickle` catches."""
        pickled = Pickle()
        for opcode, argument, _ in pickletools.genops(file):
            built = pickled.take(opcode, argument)
            array = array_behind(built) if built is not None else None
            if array is not None:
                size, kind, is_padded = array
                padding = file.read(file.read(1)[0] if is_padded else 0)
                yield from self._bytes(padding.strip(b"\xff"), name)  # as long as the array's alignment asks
                content = file.read(size)
                if len(content) < size:
                    raise ValueError("an array is cut short")
                yield from (
                    self._array_lines(b"", content, kind, name)
                    if kind != OBJECTS
                    else self._opcodes(file, name)
                )
            if opcode.name == "FRAME":  # how long the texts are
                continue
            if opcode.name.endswith(_BY_NAME):  # a place in the memo, a class: no value
                shown = f"{opcode.name} {argument!r}"
                yield f"{name}{shown.translate(_NO_DIGITS)}"
            else:
                yield from self._argument(opcode.name.translate(_NO_DIGITS), argument, name)

    def _argument(self, opcode: str, argument: object, name: str) -> Iterator[str]:
        if moment := date_of(argument):
            yield from (f"{name}{opcode}", f"{name}moment {moment}")
        elif isinstance(argument, bytes | bytearray):
            yield f"{name}{opcode}"
            yield from self._bytes(bytes(argument), name)
        elif isinstance(argument, bool) or argument is None:
            yield f"{name}{opcode} {argument}"
        elif isinstance(argument, int):
            yield f"{name}int {argument}"
        elif isinstance(argument, float):
            shown = repr(argument) if not math.isnan(argument) else _shown(struct.pack("<d", argument))
            yield f"{name}float {shown}"
        else:
            yield from _quoted(name, f"{argument}")

    def _picture(self, data: bytes, name: str, _depth: int) -> Iterator[str] | None:
        found = png_chunks.chunks(data)
        return self._chunk_lines(found, name) if found is not None else None

    def _chunk_lines(self, found: list[tuple[str, bytes]], name: str) -> Iterator[str]:
        for kind, body in found:
            text = png_chunks.text_of(kind, body)
            if text is None:
                yield f"{name}{kind} {_digest(body)}"
            else:
                yield from _quoted(f"{name}{kind} ", text)

    def _text(self, data: bytes, name: str) -> Iterator[str]:
        for line in data.decode().split("\n"):
            begin = 0
            for match in _PICKLED.finditer(line):
                inside = base64.b64decode(match[1])
                again = base64.b64encode(inside).decode() == match[1]
                found = self._pickle(inside, name, 0) if again else None
                if found is not None:
                    yield f"{name}{line[begin : match.start(1)]}"
                    yield from found
                    begin = match.end(1)
            yield f"{name}{line[begin:]}"

    def _bytes(self, data: bytes, name: str) -> Iterator[str]:
        """Yield bytes with the texts and the measured numbers in them."""
        if len(data) > _MOST_SCANNED:
            yield f"{name}{len(data)} bytes: {_digest(data)}"
            return
        begin = 0
        for at, size, told in [*self._found(data), (len(data), 0, "")]:
            yield from _between(data, begin, at, name)
            if told:
                yield f"{name}{told}"
            begin = at + size

    def _found(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield where measured numbers stand in bytes: at any place with eight, at even ones with four."""
        singles: dict[bytes, str] = {}
        if len(data) / 4 * len(self.words) < _LIKELY_SINGLE * 2**32:
            for word, shown in self.words.items():
                if shown.startswith("double "):
                    with_four = _four(struct.unpack("<d", word)[0])
                    singles |= {with_four: f"single {float32(with_four)}"} if with_four else {}
        at = 0
        while at < len(data) - 3:
            size, told = 8, self.words.get(data[at : at + 8])
            if told is None and data[at] == _CENTURY:
                size, told = 10, self.words.get(data[at : at + 10])
            if told is None and at % 4 == 0:
                size, told = 4, singles.get(data[at : at + 4])
            if told is not None:
                yield at, size, told
            at += size if told is not None else 1


_CENTURY = 7  # the first byte of a year from 1792 to 2047
_NO_DIGITS = str.maketrans("0123456789", "ghijklmnop")
_BY_NAME = ("GET", "PUT", "GLOBAL", "INST", "PERSID", "EXT1", "EXT2", "EXT4", "PROTO")
"""How the opcodes of pickles end that give no value."""
_PAX_TIMES = ("mtime", "atime", "ctime")


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _between(data: bytes, begin: int, end: int, name: str) -> Iterator[str]:
    """Yield bytes in which no measured number stands: likely numbers of arrays, texts, and all else."""
    plain = begin
    texts = iter([*_LONG_TEXT.finditer(data, begin, end)])
    text = next(texts, None)
    for at in range(begin + -begin % 8, end - 7, 8):
        while text is not None and text.end() < at + 8:
            text = next(texts, None)
        if text is not None and text.start() <= at:
            continue
        (value,) = struct.unpack_from("<d", data, at)
        if _SMALL < abs(value) < _LARGE and digits(repr(value)) >= EXACT:
            yield from _plain(data[plain:at], name)
            yield f"{name}double {value!r}"
            plain = at + 8
    yield from _plain(data[plain:end], name)


_SMALL, _LARGE = 1e-9, 1e11


def _plain(data: bytes, name: str) -> Iterator[str]:
    """Yield texts, and what is between them.

    A text of FlatBuffers, as in a model of CatBoost's, has its length before it and is filled up with zeros:
    https://flatbuffers.dev/internals/#strings. So one that is drawn with a digit less changes nothing else.
    """
    begin = 0
    for match in _TEXT.finditer(data):
        start, end, size = match.start(), match.end(), len(match[0])
        filled = end + 4 - size % 4
        has_length = start - begin >= 4 and data[start - 4 : start] == size.to_bytes(4, "little")
        if has_length and filled <= len(data) and not data[end:filled].strip(b"\0"):
            start, end, kind = start - 4, filled, "text of its length"
        else:
            kind = "text"
        if start > begin:
            yield f"{name}bytes {_digest(data[begin:start])}"
        yield f"{name}{kind} {match[0].decode()}"
        begin = end
    if begin < len(data):
        yield f"{name}bytes {_digest(data[begin:])}"


def _quoted(name: str, text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield f"{name}text {line!r}"


def _shown(data: bytes) -> str:
    return data.hex().encode().translate(_LETTERS).decode()


def _digest(data: bytes) -> str:
    """Return bytes that are few, and of others a hash, without digits."""
    shown = _shown(data) if len(data) <= 64 else _shown(hashlib.sha256(data).digest())
    return f"{shown} of {str(len(data)).translate(_NO_DIGITS)}"


def _four(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return b""


def _double(data: bytes) -> str:
    (value,) = struct.unpack("<d", data)
    return _shown(data) if math.isnan(value) else f"double {value!r}"


def _whole(data: bytes) -> str:
    return f"whole {int.from_bytes(data, 'little', signed=True)}"


_NUMBERS: dict[str, tuple[int, Callable[[bytes], str]]] = {
    "<f8": (8, _double),
    "<f4": (4, lambda data: f"single {float32(data)}"),
    "<i8": (8, _whole),
    "<i4": (4, _whole),
}
