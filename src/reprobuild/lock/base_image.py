"""The part of a lock that names the image underneath, by digest. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..request.reference import Reference
from ..request.table import Table

_KEYS = (
    *("image", "index", "manifests", "config", "created", "system", "suite", "glibc", "python"),
    *("python-version", "cuda", "env", "layers"),
)
_TAR = "application/vnd.oci.image.layer.v1.tar"
MEDIA_TYPES = {
    "application/vnd.docker.image.rootfs.diff.tar": _TAR,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": f"{_TAR}+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd": f"{_TAR}+zstd",
    **{each: each for each in (_TAR, f"{_TAR}+gzip", f"{_TAR}+zstd")},
}
"""OCI's name of each media type of layers; the bytes are the same."""

MOST_BYTES = 32 << 30
"""Of a layer's blob: four times the largest layer that reprobuild itself makes."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)+[a-z0-9+]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseLayer:
    """A layer of the base image, unchanged."""

    digest: str
    """``sha256:…`` of the compressed blob."""
    size: int
    """Bytes of the blob."""
    media_type: str
    """Media type as OCI names it, also if the registry uses Docker's name."""
    diff_id: str
    """``sha256:…`` of the tar in it."""

    @property
    def sha256(self) -> str:
        """The digest without its prefix, as the store has it."""
        return self.digest.removeprefix("sha256:")

    @classmethod
    def read(cls, get: Table) -> BaseLayer:
        """Check the table of a layer. Raises `TableError`."""
        get.only(("digest", "size", "media-type", "diff-id"))
        return cls(
            digest=get.digest("digest"),
            size=get.size(most=MOST_BYTES),
            media_type=get.choice("media-type", sorted({*MEDIA_TYPES.values()})),
            diff_id=get.digest("diff-id"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseImage:
    """The image underneath, as the registry had it when it was locked."""

    image: str
    """The reference in full: host, name and tag."""
    index: str | None
    """The digest of the list of platforms, where there is one."""
    manifests: Mapping[str, str]
    """Platform → digest of the image for it; the rest here is of the lock's own platform."""
    config: str
    """The digest of its configuration."""
    created: str
    """When it was built, as its configuration says; empty where that says nothing."""
    system: str
    """``Debian GNU/Linux 12 (bookworm)``, as its os-release has it."""
    suite: str
    """The Debian release that it is; empty for another system."""
    glibc: str
    """``2.36``"""
    python: str
    """Absolute path of its interpreter for the request; empty if Debian's packages install one."""
    python_version: str
    """``3.11.2``; empty as `python`."""
    cuda: Sequence[str]
    """The absolute paths of the CUDA libraries in it."""
    env: Mapping[str, str]
    """Its variables; reprobuild's own count for more."""
    layers: Sequence[BaseLayer]
    """The lowest first."""

    @property
    def name(self) -> str:
        """Host and repository."""
        reference = Reference.parse(self.image)
        assert reference is not None, self.image
        return reference.name

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `read` reads back."""
        table = {**_entry(self), "cuda": list(self.cuda), "layers": [_entry(layer) for layer in self.layers]}
        table |= {key: dict(sorted(table[key].items())) for key in ("manifests", "env")}
        return table if self.index else {key: value for key, value in table.items() if key != "index"}

    @classmethod
    def read(cls, get: Table) -> BaseImage:
        """Validate a table of a lock. Raises `TableError`."""
        get.only(_KEYS)

        def text(key: str, form: str = r"[^\x00-\x1f\x7f]*", like: str = "one line of text") -> str:
            return get.text(key, re.compile(form).fullmatch, like)

        manifests, env = get.table("manifests", default={}), get.table("env", default={})
        for name, value in env.data.items():
            if not (_VARIABLE.fullmatch(name) and isinstance(value, str) and value.isprintable()):
                raise env.bad(name, "expected a name and one line of text")
        layers = [BaseLayer.read(each) for each in get.tables("layers", default=())]
        if not layers:
            raise get.bad("layers", "missing")
        return cls(
            image=get.text("image", Reference.parse, "an image's reference"),
            index=get.digest("index") if get.has("index") else None,
            manifests={platform: manifests.digest(platform) for platform in sorted(manifests.data)},
            config=get.digest("config"),
            created=text("created"),
            system=text("system"),
            suite=text("suite", "[a-z]*", "a release's code name, or nothing"),
            glibc=text("glibc", r"[0-9]+\.[0-9]+", "a version like 2.36"),
            python=text("python", r"|(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)+", "an absolute path, or nothing"),
            python_version=text("python-version", f"|{_VERSION.pattern}", "a version, or nothing"),
            cuda=tuple(get.texts("cuda", default=())),
            env=dict(sorted(env.data.items())),
            layers=tuple(layers),
        )


def _entry(value: BaseImage | BaseLayer) -> dict[str, Any]:
    return {key.replace("_", "-"): each for key, each in asdict(value).items()}
