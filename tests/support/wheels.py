"""Small real wheels with every oddity, made byte for byte; and locks and stores that hold them."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import PythonPackage, Wheel
from support.locks import LOCK

FILE = stat.S_IFREG | 0o644


@dataclass(frozen=True, kw_only=True)
class Item:
    """A member of a wheel: its bytes, and the upper half of its attributes."""

    content: bytes = b""
    mode: int = FILE
    compress: int = zipfile.ZIP_DEFLATED


def wheel_bytes(
    name: str,
    version: str,
    files: Mapping[str, bytes | str | Item],
    *,
    entry_points: str = "",
    record: str | None = None,
    unlisted: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
    info: Mapping[str, bytes | str | Item] | None = None,
) -> bytes:
    """Return a wheel; ``rows`` are more lines of RECORD, ``record`` stands in its place ("": none)."""
    module = canonicalize_name(name).replace("-", "_")
    folder = f"{module}-{version}.dist-info"
    text = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{folder}/entry_points.txt": entry_points} if entry_points else {}),
        **{f"{folder}/{path}": content for path, content in (info or {}).items()},
    }
    members = {path: _item(what) for path, what in {**files, **text}.items()}
    if record is None:
        table = io.StringIO(newline="")
        writer = csv.writer(table, lineterminator="\n")
        for path, item in members.items():
            if path not in unlisted and not path.endswith("/"):
                writer.writerow((path, _hash(item.content), len(item.content)))
        writer.writerows(rows)
        writer.writerow((f"{folder}/RECORD", "", ""))
        record = table.getvalue()
    if record:
        members[f"{folder}/RECORD"] = Item(content=record.encode())
    return zip_bytes(members)


def zip_bytes(members: Mapping[str, Item]) -> bytes:
    """Return a zip archive of some members, in their order, the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, item in members.items():
            info = zipfile.ZipInfo(path)
            info.create_system = 3
            info.external_attr = item.mode << 16
            info.compress_type = item.compress
            archive.writestr(info, item.content)
    return out.getvalue()


def odd_wheel() -> bytes:
    """Return a wheel that does everything that a wheel may."""
    data = "Odd.Name-1.0.data"
    return wheel_bytes(
        "Odd.Name",
        "1.0",
        {
            "odd/__init__.py": "VALUES = frozenset({'a', 'b', 'c'})\n",
            "odd/sub/": b"",
            "odd/empty/": b"",
            "odd/sub/néw, file.txt": "a name with a comma\n",
            "odd/run.sh": Item(content=b"#!/bin/sh\n", mode=stat.S_IFREG | 0o755),
            "odd/mine.sh": Item(content=b"#!/bin/sh\n", mode=stat.S_IFREG | 0o700),
            "odd/setuid": Item(content=b"x", mode=stat.S_IFREG | 0o4755),
            "odd/group": Item(content=b"x", mode=stat.S_IFREG | 0o610),
            "odd/private": Item(content=b"x", mode=stat.S_IFREG | 0o600),
            "odd/no-kind": Item(content=b"x", mode=0o755),
            "odd/link": Item(content=b"run.sh", mode=stat.S_IFLNK | 0o777),
            "odd/stored.bin": Item(content=bytes(range(256)) * 9, compress=zipfile.ZIP_STORED),
            "odd/zeros.bin": bytes(3 << 20),
            "odd/broken.py": "def (:\n",
            "odd/__pycache__/__init__.cpython-311.pyc": b"shipped",
            "odd/unlisted.txt": "in no RECORD\n",
            "over.txt": "from the root\n",
            f"{data}/purelib/over.txt": "from purelib, which is written later\n",
            f"{data}/platlib/odd_plat.py": "PLAT = 1\n",
            f"{data}/headers/odd.h": "#define ODD 1\n",
            f"{data}/data/share/odd/data.txt": "data\n",
            f"{data}/data/etc/odd.conf": Item(content=b"conf\n", mode=stat.S_IFREG | 0o755),
            f"{data}/data/lib64/odd.cmake": "through the link\n",
            f"{data}/scripts/odd-script": Item(
                content=b"#!python -E\nprint('x')\n", mode=stat.S_IFREG | 0o755
            ),
            f"{data}/scripts/odd-window": "#!pythonw\r\nprint('x')\n",
            f"{data}/scripts/odd-one-line": "#!python",
            f"{data}/scripts/odd-program": Item(content=b"\x7fELF\0#!python\n", mode=stat.S_IFREG | 0o755),
            f"{data}/scripts/odd-shell": "#!/bin/sh\n",
            f"{data}/scripts/odd-main": "#!python\nmade anew from the entry point\n",
            f"{data}/scripts/odd-gui-script.py": "#!python\nlikewise\n",
            f"{data}/scripts/odd-gui.exe": b"MZ",
        },
        entry_points=(
            "# a comment\n[console_scripts]\nodd-main = odd.cli:main\nodd-extra=odd.cli:App.run [more]\n"
            "# another\nodd-twice = odd:first\nodd-twice = odd:last\n"
            "[gui_scripts]\nodd-gui = odd.gui:start\n[other.group]\nname = odd\n"
        ),
        unlisted=["odd/unlisted.txt"],
        rows=[
            ("odd/not-there.txt", "sha256=x", "3"),
            ("../../../share/odd/elsewhere", "", ""),
            ("odd/short",),
        ],
        info={"INSTALLER": "conda\n", "licenses/LICENSE": "free\n"},
    )


def toy_pip(template: str = "# {module}") -> bytes:
    """Return a wheel of a pip that has nothing but the template of its scripts."""
    source = (
        "import textwrap\nclass PipScriptMaker:\n    script_template = textwrap.dedent(\n"
        '        """\\\n        import sys\n        from %(module)s import %(import_name)s\n'
        "        if __name__ == '__main__':\n            sys.exit(%(func)s())\n"
        '        """\n    )\n'
    )
    files = {"pip/__init__.py": "", "pip/_internal/operations/install/wheel.py": source}
    points = "[console_scripts]\npip = pip._internal.cli.main:main\npip3 = pip._internal.cli.main:main\n"
    return wheel_bytes("pip", "26.0", files, entry_points=points)


def simple_wheel(name: str, version: str = "1.0", **files: str) -> bytes:
    """Return a wheel of a package with an ``__init__.py`` and more files, by name without ``.py``."""
    module = name.replace("-", "_")
    more = {f"{module}/{file}.py": text for file, text in files.items()}
    return wheel_bytes(name, version, {f"{module}/__init__.py": f"NAME = {name!r}\n", **more})


def put(home: Home, name: str, data: bytes, version: str = "1.0") -> PythonPackage:
    """Lay a wheel into the store and return it as a locked package."""
    sha256 = hashlib.sha256(data).hexdigest()
    with Store(home).partial(sha256) as partial:
        assert partial is not None
        partial.file.write(data)
        Store(home).add(sha256, partial.path)
    return package(name, sha256, len(data), version)


def package(name: str, sha256: str, size: int, version: str = "1.0") -> PythonPackage:
    """Return a locked package of a pure wheel."""
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    url = f"https://packages.example.org/{filename}"
    return PythonPackage(
        name=name, version=version, wheel=Wheel(filename=filename, url=url, sha256=sha256, size=size)
    )


def toy_lock(packages: Sequence[PythonPackage]) -> Lock:
    """Return the golden lock with other Python packages."""
    return replace(LOCK, python=packages)


def write_wheel(folder: Path, name: str, version: str, data: bytes) -> Path:
    """Write a wheel under the name that an installer wants."""
    path = folder / f"{canonicalize_name(name).replace('-', '_')}-{version}-py3-none-any.whl"
    path.write_bytes(data)
    return path


def _item(what: bytes | str | Item) -> Item:
    if isinstance(what, Item):
        return what
    return Item(content=what.encode() if isinstance(what, str) else what)


def _hash(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
