"""Archives, pickles, arrays and other bytes: a time in them is told from a result."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import pickle
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.file_values import value_lines
from reprobuild.twice.first_difference import files_apart
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.written import written_files

NOON = 1927627200.0


@dataclass(frozen=True)
class Run:
    """The values of one run: a time, the date, a process number and results."""

    took: float
    began: float
    process: int
    results: tuple[float, ...] = (0.8125, 12.75, 3.0e-05, 0.1)
    label: str = "accuracy 0.9312"

    @property
    def evidence(self) -> Evidence:
        values = (("value", self.took), ("value", self.began), ("moment", self.began))
        return Evidence(
            began=self.began - 1,
            ended=self.began + 5,
            names={"process numbers": (str(self.process),)},
            items=[Item((kind, "train.py", 3, at), value, 0, 0) for at, (kind, value) in enumerate(values)],
        )

    @property
    def date(self) -> datetime:
        return datetime.fromtimestamp(self.began, UTC).replace(tzinfo=None)

    @property
    def text(self) -> bytes:
        told = f"{self.label} {self.results} took {self.took} s at {self.date.isoformat()}\n"
        return told.encode()


ONE = Run(0.12345678901, NOON + 0.25, 4242)
OTHER = Run(0.23456789012, NOON + 7.5, 4311)


def npy(run: Run) -> bytes:
    values = (run.took, *run.results)
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<5d", *values)


def zipped(run: Run, text: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        date = run.date.timetuple()[:6]
        archive.writestr(zipfile.ZipInfo("log.txt", date), text or run.text)
        archive.writestr(zipfile.ZipInfo("values.npy", date), npy(run))
    return file.getvalue()


def tarred(run: Run) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in (("log.txt", run.text), ("values.pkl", pickled(run))):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), int(run.began)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def pickled(run: Run, protocol: int = 4) -> bytes:
    values = {"took": run.took, "label": run.label, "results": list(run.results), "date": run.date}
    return pickle.dumps({**values, "process": run.process, "array": struct.pack("<d", run.took)}, protocol)


JOBLIB = zlib.decompress(
    base64.b85decode(
        r"c-m!A%SyvQ6m8m+)cR<Pih@X8wwvM$R1m9F5De`?5SL|=j!x|4K{7$IDAYx<!YstzF6^JU@)z8TKj6kssFOaCUbu754EJ&FnWo(R"
        r"iVUp*IW9BXt^;4bw>4^L1<N;`pz0WUonqjbN_ahUT@>87$Z@a>9mqdISeWp9O{d87fX4?_z!j^8!d#KW;~qf{232YaY`Zm4%B7OP"
        r"H5Q0>k{BbA8@)Y*=k^m^K~9Zv=@=@N%4J{J;7}tBG@eA1+7DIJL=Lq1#*pV=S`|^_&N8vZs#?IX2Wr~a=K5pHYUc;vy^mt|Vzf1n"
        r"Q>0-EJcV@Kcaa`!Z5NLAc6P-AF7|xNJRtILOQMh@nOEf&kVUdYQe=g!waI!oK^gTQHvK6MLNkAAY+jese*dKR7TSBU+ZfN4YlsO^"
        r"6JcP6`44uWlvIAD>_Q|G`+R|x&_YPaurtFYHsO-tQDc8999f-}ZNhe{M@U5y9u?kAjkzg~YwK8iX8ASk7ybYfLDdi"
    )
)
"""What joblib 1.6 wrote of the values of `ONE` in a dictionary, the numbers in arrays of NumPy."""


def by_joblib(run: Run) -> bytes:
    found = JOBLIB
    for old, new in zip(_parts(ONE), _parts(run), strict=True):
        assert found.count(old) == 1
        found = found.replace(old, new)
    return found


def _parts(run: Run) -> tuple[bytes, ...]:
    numbers = struct.pack("<d", run.took), struct.pack(f"<{len(run.results)}d", *run.results)
    return (*numbers, run.date.__reduce__()[1][0], struct.pack("<H", run.process), run.label.encode())  # type: ignore[return-value]


def mixed(run: Run) -> bytes:
    """Bytes of a format that nothing here reads."""
    return b"".join(
        [
            b"\x89FMT\r\n\x1a\n" + struct.pack("<d", run.took),
            struct.pack("<f", run.took),
            struct.pack("<q", run.process),
            run.label.encode(),
            struct.pack(f">{len(run.results)}d", *run.results),
            run.date.isoformat(timespec="seconds").encode(),
            b"\0\1\2",
        ]
    )


KINDS: dict[str, Callable[[Run], bytes]] = {
    "array.npy": npy,
    "both.npz": zipped,
    "log.txt.gz": lambda run: gzip.compress(run.text, mtime=int(run.began)),
    "log.bz2": lambda run: bz2.compress(run.text),
    "log.xz": lambda run: lzma.compress(run.text),
    "agent.zip": lambda run: zipped(run, b'{"data": "' + base64.b64encode(pickled(run)) + b'"}\n'),
    "model.joblib": lambda run: zlib.compress(pickled(run)),
    "model.zip": zipped,
    "search.joblib": by_joblib,
    "out.tar.gz": tarred,
    "state.bin": mixed,
    **{f"state{number}.pkl": partial(pickled, protocol=number) for number in (3, 4, 5)},
}


def results_apart(name: str, one: bytes, other: bytes, folder: Path) -> bool:
    sides = []
    for number, content in enumerate((one, other)):
        below = folder / str(number)
        below.mkdir(exist_ok=True)
        (below / name).write_bytes(content)
        run = (ONE, OTHER)[number]
        sides.append(written_files(below, "/out", run.evidence, Ignored())[0])
    ends, texts = files_apart(Texts(ONE.evidence, OTHER.evidence), *sides)
    assert bool(ends) != bool(texts)
    return bool(ends)


@pytest.mark.parametrize("name", KINDS)
def test_a_time_in_a_file_of_bytes_is_no_result(name: str, tmp_path: Path) -> None:
    assert not results_apart(name, KINDS[name](ONE), KINDS[name](OTHER), tmp_path)


@pytest.mark.parametrize(("name", "seed"), [*product(KINDS, range(12))])
def test_a_result_beside_it_counts(name: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    results = list(OTHER.results)
    at = draw.randrange(len(results) + (name != "array.npy"))
    label = OTHER.label
    if at < len(results):
        results[at] = float(_changed(repr(results[at]), draw))
    else:
        label = _changed(label, draw)
    changed = Run(OTHER.took, OTHER.began, OTHER.process, tuple(results), label)
    assert results_apart(name, KINDS[name](ONE), KINDS[name](changed), tmp_path)


def _changed(text: str, draw: random.Random) -> str:
    mantissa = text.partition("e")[0]
    at = draw.choice([at for at, each in enumerate(mantissa) if each.isdigit()])
    return f"{text[:at]}{draw.choice([each for each in '0123456789' if each != text[at]])}{text[at + 1 :]}"


def torchs(names: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in names.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}", (2000, 1, 1, 0, 0, 0)), content)
    return file.getvalue()


def packed(comment: bytes) -> bytes:
    whole = gzip.compress(b"loss 0.5", mtime=0)
    return whole[:3] + b"\x10" + whole[4:10] + comment + b"\0" + whole[10:]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torchs({"data.pkl": b"x", "version": b"1"}), torchs({"data.pkl": b"x", "version": b"2"})),
        (torchs({"data.pkl": b"x", "byteorder": b"a"}), torchs({"data.pkl": b"x", "byteorder": b"b"})),
        (
            torchs({"data.pkl": b"x", ".data/serialization_id": b"loss 0.5"}),
            torchs({"data.pkl": b"x", ".data/serialization_id": b"loss 0.6"}),
        ),
        (packed(b"loss 0.5"), packed(b"loss 0.6")),
        (b"\x80\x04K\x05.", b"\x80\x04h\x05."),
        (b"\x80\x04ca\nb\n.", b"\x80\x04ca\nc\n."),
    ],
    ids=["version", "byteorder", "serialization", "gzip comment", "memo", "class"],
)
def test_what_a_format_has_beside_its_content_is_a_result(one: bytes, other: bytes, tmp_path: Path) -> None:
    assert results_apart("some.bin", one, other, tmp_path)


def test_a_date_in_a_pdf_is_no_number(tmp_path: Path) -> None:
    """Eight bytes of this text, ``148Z) >>``, are the double 1.88e-09."""
    one, other = (
        b"%PDF-1.4\n%\xac\xdc \xab\xba\n<< /CreationDate (D:"
        + run.date.strftime("%Y%m%d%H%M%S").encode()
        + b"Z) >>\nendobj\n"
        for run in (ONE, OTHER)
    )
    for shift in range(8):
        assert not results_apart("plot.pdf", b"\0" * shift + one, b"\0" * shift + other, tmp_path)


def test_padding_before_an_array_that_is_no_padding_counts(tmp_path: Path) -> None:
    at = JOBLIB.index(b"\xff" * 6)  # no number has so many
    assert results_apart("some.bin", JOBLIB, JOBLIB[:at] + b"7" + JOBLIB[at + 1 :], tmp_path)


def test_the_number_that_torch_makes_of_the_other_members_is_none(tmp_path: Path) -> None:
    one, other = (torchs({"data.pkl": b"x", ".data/serialization_id": each * 40}) for each in (b"1", b"2"))
    assert not results_apart("some.bin", one, other, tmp_path)


@given(binary(min_size=1, max_size=120), integers(0), integers(1, 255))
def test_two_contents_never_have_the_same_lines(data: bytes, at: int, change: int) -> None:
    at %= len(data)
    other = data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]
    for content in (data, struct.pack("<d", ONE.took) + data, pickle.dumps(data)):
        twin = content.replace(data, other) if content.count(data) == 1 else None
        if twin not in (None, content):
            assert value_lines(content, ONE.evidence) != value_lines(twin, ONE.evidence)


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_compared_by_their_bytes(name: str, tmp_path: Path) -> None:
    whole = KINDS[name](OTHER)
    for size in range(1, len(whole), max(1, len(whole) // 40)):
        assert results_apart(name, KINDS[name](ONE), whole[:size], tmp_path)
        assert results_apart(name, KINDS[name](ONE), whole + whole[:size], tmp_path)


def test_what_unpacks_to_a_gigabyte_is_not_unpacked() -> None:
    packed = gzip.compress(bytes(64 << 20), mtime=0)
    found = value_lines(packed, ONE.evidence)
    assert found is not None
    assert not any(line.startswith("gzip") for line in found)


def flat_text(text: bytes, padding: int | None = None) -> bytes:
    """Return a text as FlatBuffers has it: with its length, a zero, and zeros up to a multiple of four."""
    size = len(text).to_bytes(4, "little")
    return size + text + b"\0" * (4 - len(text) % 4 if padding is None else padding)


def test_a_text_of_another_length_leaves_what_is_around_it() -> None:
    """As the id of a model of CatBoost's, which has a digit less at times."""
    before, after = b"CBM1\x90\x01\x02\x03", b"\xff\xfe\xfd\xfc weights"
    ids = [b"999594fb-70857d1d-e148d046-82051a8a", b"999594fb-70857d1d-e148d046-2051a8a"]
    one, other = (value_lines(before + flat_text(each) + after, Evidence()) for each in ids)
    assert one
    assert other
    assert [(a, b) for a, b in zip(one, other, strict=True) if a != b] == [
        tuple(f"text of its length {each.decode()}" for each in ids)
    ]
    odd = [
        ids[0],
        flat_text(ids[0], 0),
        flat_text(ids[0], 2),
        flat_text(ids[0])[1:],
        b"\1" + flat_text(ids[0])[1:],
    ]
    odd += [flat_text(ids[1], 0) + b"\0" + bytes([each]) for each in (1, 2)]
    lines = [value_lines(before + each + after, Evidence()) for each in (flat_text(ids[0]), *odd)]
    assert len(set(lines)) == len(lines)


def test_a_date_of_pandas_is_found_by_its_microseconds_or_nanoseconds() -> None:
    evidence = Evidence(items=[Item(("moment", "train.py", 3, 0), 1927627200.25, 0, 0)])
    micro = 1927627200250000
    for unit, name in ((1, "micro"), (1000, "nano")):
        for more in (0, 1):
            lines = value_lines(b"\xff\xfe" * 4 + (unit * (micro + more)).to_bytes(8, "little"), evidence)
            assert lines
            assert (f"moment 2031-01-31 12:00:00.250000 in {name}seconds" in lines) == (not more)
