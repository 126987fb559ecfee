"""A conda channel of real packages on loopback: made file by file, indexed by py-rattler."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import io
import json
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import zstandard
from rattler.index import index_fs

from support.server import listening

BUILT = 1_725_000_000_000
"""The usual time stamp of a package: 30 August 2024, in milliseconds."""
PLACEHOLDER = "/placeholder/" + "x" * 60

Content = bytes | str | Path
"""A file's bytes; a symbolic link's target; or a file of this machine with its mode."""


@dataclass
class Channel:
    """A folder that becomes a channel with `index`."""

    folder: Path
    url: str = ""
    status: int = 200
    subdir: str = "linux-64"
    """Of what is added from now on, but for noarch."""
    log: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        version: str,
        build: str = "0",
        *,
        files: Mapping[str, Content] | None = None,
        depends: Sequence[str] = (),
        constrains: Sequence[str] = (),
        noarch: bool = False,
        entry_points: Sequence[str] = (),
        prefixed: Sequence[str] = (),
        timestamp: int | None = BUILT,
        bz2: bool = False,
    ) -> Path:
        """Write a package; ``prefixed`` are the files in which PLACEHOLDER stands for the prefix."""
        subdir = "noarch" if noarch else self.subdir
        index: dict[str, Any] = {"name": name, "version": version, "build": build, "build_number": 0}
        index |= {
            "depends": list(depends),
            "constrains": list(constrains),
            "subdir": subdir,
            "license": "MIT",
        }
        index |= {"timestamp": timestamp} if timestamp is not None else {}
        index |= {"noarch": "python"} if noarch else {}
        content = dict(files or {})
        info = {
            "info/index.json": json.dumps(index).encode(),
            "info/paths.json": json.dumps(
                {"paths": [_path(p, c, prefixed) for p, c in content.items()], "paths_version": 1}
            ).encode(),
            "info/files": "".join(f"{path}\n" for path in content).encode(),
        }
        if noarch:
            table = {"noarch": {"type": "python", "entry_points": list(entry_points)}}
            info["info/link.json"] = json.dumps({**table, "package_metadata_version": 1}).encode()
        stem = f"{name}-{version}-{build}"
        out = self.folder / subdir / f"{stem}{'.tar.bz2' if bz2 else '.conda'}"
        out.parent.mkdir(parents=True, exist_ok=True)
        if bz2:
            with tarfile.open(out, "w:bz2") as tar:
                _fill(tar, {**info, **content})
            return out
        with zipfile.ZipFile(out, "w") as outer:
            outer.writestr("metadata.json", b'{"conda_pkg_format_version": 2}')
            for part, members in (("pkg", content), ("info", info)):
                with (
                    outer.open(f"{part}-{stem}.tar.zst", "w") as packed,
                    zstandard.ZstdCompressor(level=1).stream_writer(packed, closefd=False) as plain,
                    tarfile.open(fileobj=plain, mode="w|") as tar,
                ):
                    _fill(tar, members)
        return out

    def index(self, change: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Write repodata.json; ``change`` sets or, with None, removes keys of packages, by file name."""
        (self.folder / "noarch").mkdir(parents=True, exist_ok=True)
        asyncio.run(index_fs(self.folder, write_zst=False, write_shards=False, force=True))
        for file in self.folder.glob("*/repodata.json"):
            data = json.loads(file.read_bytes())
            for name, record in {**data["packages"], **data["packages.conda"]}.items():
                record.pop("indexed_timestamp", None)
                for key, value in (change or {}).get(name, {}).items():
                    record.pop(key, None)
                    record.update({} if value is None else {key: value})
            file.write_text(json.dumps(data))


@contextmanager
def serve_channel(folder: Path) -> Iterator[Channel]:
    """Serve a folder on 127.0.0.1 as a channel."""
    channel = Channel(folder)
    folder.mkdir(parents=True, exist_ok=True)

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Keep it off the tests' output."""

        def handle(self) -> None:
            # A client that has what it wants goes away, whatever is still on its way to it.
            with suppress(ConnectionError):
                super().handle()

        def send_head(self) -> Any:
            channel.log.append(self.path)
            # Its grain is a second, in which a test changes the channel.
            del self.headers["If-Modified-Since"]
            if channel.status != 200:
                self.send_error(channel.status)
                return None
            return super().send_head()

    with listening(functools.partial(Handler, directory=str(folder))) as httpd:
        channel.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        yield channel


def small_forge(channel: Channel) -> None:
    """Fill a channel as conda-forge is built: torch for CPU, CUDA 12.1 and 12.6, by cuda-version."""
    for version in ("3.11.9", "3.12.4"):
        channel.add("python", version, "h1_cpython", depends=["libzlib"])
    channel.add("libzlib", "1.3.1", bz2=True)
    for name, version in {"pip": "24.2", "filelock": "3.15"}.items():
        channel.add(name, version, "pyhd8ed1ab_0", depends=["python >=3.8"], noarch=True)
    channel.add("numpy", "1.26.4", "py311_0", depends=["python >=3.11,<3.12.0a0"])
    channel.add("numpy", "2.1.0", "py311_0", depends=["python >=3.11,<3.12.0a0"])
    for cuda, cudart in {"12.1": "12.1.105", "12.6": "12.6.77"}.items():
        channel.add("cuda-version", cuda, constrains=["__cuda >=12"], noarch=True)
        channel.add("cuda-cudart", cudart, depends=[f"cuda-version {cuda}.*"])
    channel.add("cudnn", "9.1.0.70", depends=["cuda-version >=12,<13"])
    channel.add("nccl", "2.20.5", depends=["cuda-version >=12,<13"])
    common = ["python >=3.11,<3.12.0a0", "filelock", "numpy"]
    for version in ("2.4.0", "2.4.1"):
        channel.add("pytorch", version, "cpu_generic_py311_0", depends=common)
        gpu = [*common, "__cuda", "cuda-cudart >=12.0,<13", "cuda-version >=12.0,<13", "cudnn", "nccl"]
        channel.add("pytorch", version, "cuda120_py311_0", depends=gpu)
        channel.add("pytorch-gpu", version, "cuda120_py311_0", depends=[f"pytorch {version} *cuda*"])
    channel.add("pytorch", "2.5.0", "cpu_generic_py311_0", depends=common)
    channel.add("needs-old-numpy", "1.0", depends=["numpy <1.20"])
    channel.add("young", "1.0", timestamp=BUILT)
    channel.add("young", "2.0", timestamp=BUILT + 90 * 86_400_000)
    channel.add("undated", "1.0", timestamp=None)


def _path(path: str, content: Content, prefixed: Sequence[str]) -> dict[str, Any]:
    if isinstance(content, str):
        return {"_path": path, "path_type": "softlink", "sha256": hashlib.sha256(b"").hexdigest()}
    data = content.read_bytes() if isinstance(content, Path) else content
    entry = {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest()}
    extra = {"prefix_placeholder": PLACEHOLDER, "file_mode": "text"} if path in prefixed else {}
    return {**entry, "size_in_bytes": len(data), **extra}


def _fill(tar: tarfile.TarFile, members: Mapping[str, Content]) -> None:
    for path, content in members.items():
        entry = tarfile.TarInfo(path)
        if isinstance(content, str):
            entry.type, entry.linkname = tarfile.SYMTYPE, content
            tar.addfile(entry)
            continue
        data = content.read_bytes() if isinstance(content, Path) else content
        mode = content.stat().st_mode if isinstance(content, Path) else 0
        executable = bool(mode & stat.S_IXUSR) or path.startswith("bin/")
        entry.size, entry.mode = len(data), 0o755 if executable else 0o644
        tar.addfile(entry, io.BytesIO(data))
