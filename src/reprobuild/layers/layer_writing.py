"""Layers in progress, in a scratch folder until they are in the cache."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO

from ..host.home import storage_errors
from ..host.host import Host
from ..host.page_cache import PageCache, PassingFile
from ..lock.layer_record import LayerRecord
from ..oci.tar_writer import LayerWriter
from .cache import Cached, LayerCache


class Drafts:
    """The unfinished layers of one build; ``folder`` is a scratch folder of its own."""

    def __init__(
        self, host: Host, folder: Path, record: LayerRecord | None = None, *, read_soon: bool = True
    ) -> None:
        """``read_soon``: whether somebody reads the blobs once the build is done."""
        self.folder = folder
        self.cache = LayerCache(host.home, record, host.console)
        self.pages = PageCache()
        self._blobs = PageCache(keeps=read_soon)

    def open(self, name: str) -> IO[bytes]:
        """Start a blob. Raises `StorageError`."""
        with storage_errors(self.folder):
            return PassingFile(self.folder / name, self._blobs)

    def put(self, key: str, out: IO[bytes], writer: LayerWriter, artifacts: Iterable[str] = ()) -> Cached:
        """Finish a layer and add it to the cache. Raises `StorageError`."""
        with storage_errors(self.folder):
            cached = Cached(writer.close(), tuple(writer.records), tuple(artifacts))
            return self.cache.put(key, Path(out.name), cached)
