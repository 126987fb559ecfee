"""The one form of a built wheel."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.sources.normalize_wheel import first_difference, normalise
from support.wheels import FILE, Item, wheel_bytes, zip_bytes

Files = Mapping[str, bytes | str | Item]
EXECUTABLE = stat.S_IFREG | 0o755


def normal(folder: Path, body: bytes, name: str = "out") -> Path:
    (folder / "raw").write_bytes(body)
    normalise(folder / "raw", "thing", folder / name)
    return folder / name


def test_order_time_modes_and_compression_do_not_count(tmp_path: Path) -> None:
    files: Files = {
        "thing/b.py": "b",
        "thing/a.py": Item(content=b"a" * 999, mode=stat.S_IFREG | 0o600),
        "thing/": b"",
    }
    other: Files = {
        "thing/a.py": Item(content=b"a" * 999, compress=zipfile.ZIP_STORED, mode=FILE),
        "thing/b.py": "b",
    }
    one = normal(tmp_path, wheel_bytes("thing", "1.0", files), "one")
    assert one.read_bytes() == normal(tmp_path, wheel_bytes("thing", "1.0", other), "two").read_bytes()
    run: Files = {**other, "thing/b.py": Item(content=b"b", mode=EXECUTABLE)}
    assert one.read_bytes() != normal(tmp_path, wheel_bytes("thing", "1.0", run), "three").read_bytes()


def test_the_form(tmp_path: Path) -> None:
    body = wheel_bytes("thing", "1.0", {"z.py": "z", "a": Item(content=b"a", mode=EXECUTABLE)})
    with zipfile.ZipFile(normal(tmp_path, body)) as wheel:
        infos = wheel.infolist()
        info = "thing-1.0.dist-info"
        assert [i.filename for i in infos] == [
            "a",
            "z.py",
            *(f"{info}/{n}" for n in ("METADATA", "WHEEL", "RECORD")),
        ]
        assert {i.date_time for i in infos} == {(1980, 1, 1, 0, 0, 0)}
        assert {i.compress_type for i in infos} == {zipfile.ZIP_STORED}
        assert [oct(i.external_attr >> 16) for i in infos[:2]] == ["0o100755", "0o100644"]
        record = wheel.read(f"{info}/RECORD").decode().splitlines()
    assert record == [*sorted(record[:-1]), f"{info}/RECORD,,"]
    assert "a,sha256=ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs,1" in record


def test_the_first_file_that_differs_is_named(tmp_path: Path) -> None:
    one = normal(tmp_path, wheel_bytes("thing", "1.0", {"a.py": "a", "b.py": "b"}), "one")
    two = normal(tmp_path, wheel_bytes("thing", "1.0", {"a.py": "a", "b.py": "c"}), "two")
    three = normal(tmp_path, wheel_bytes("thing", "1.0", {"a.py": "a"}), "three")
    assert first_difference(one, two, "thing") == "b.py differs"
    assert first_difference(one, three, "thing") == "b.py is in one of them alone"
    assert first_difference(one, one, "thing") == ""


@pytest.mark.parametrize(
    "body",
    [
        b"no zip",
        zip_bytes({}),
        zip_bytes({"thing/__init__.py": Item()}),
        zip_bytes({"a-1.dist-info/METADATA": Item(), "b-1.dist-info/METADATA": Item()}),
        zip_bytes({"a-1.dist-info/METADATA": Item(), "link": Item(mode=stat.S_IFLNK | 0o777)}),
        wheel_bytes("thing", "1.0", {"a.py": "a"})[:-30],
    ],
)
def test_what_is_no_wheel_is_refused_by_name(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"^thing: "):
        normal(tmp_path, body)


def test_a_wheel_of_another_zlib_is_the_same(tmp_path: Path) -> None:
    def packed(level: int) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name in ("thing.py", "thing-1.dist-info/METADATA"):
                archive.writestr(zipfile.ZipInfo(name), "text " * 1000, compresslevel=level)
        return out.getvalue()

    assert normal(tmp_path, packed(1), "a").read_bytes() == normal(tmp_path, packed(9), "b").read_bytes()
