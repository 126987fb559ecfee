"""The part of a lock that names the image underneath, by digest. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError
from ..request.reference import Reference
from ..request.toml_reader import Table

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEX = "sha256: and 64 hex digits"
_KEYS = (
    *("image", "index", "manifests", "config", "created", "system", "suite", "glibc", "python"),
    *("python-version", "cuda", "env", "layers"),
)
_LAYER_KEYS = ("digest", "size", "media-type", "diff-id")
MOST_BYTES = 32 << 30
"""Of a layer's blob: four times the largest layer that reprobuild itself makes."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)+[a-z0-9+]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseLayer:
    """A layer of the image underneath, taken as it is."""

    digest: str
    """``sha256:…`` of the compressed blob."""
    size: int
    """Bytes of the blob."""
    media_type: str
    """OCI's name of its form, also where the registry has it by Docker's."""
    diff_id: str
    """``sha256:…`` of the tar in it."""

    @property
    def sha256(self) -> str:
        """The digest without its prefix, as the store has it."""
        return self.digest.removeprefix("sha256:")


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
    """The absolute path of its interpreter for the request; empty where Debian's packages bring one."""
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
        """Return the table that `from_dict` reads back."""
        return {
            "image": self.image,
            **({"index": self.index} if self.index else {}),
            "manifests": dict(sorted(self.manifests.items())),
            "config": self.config,
            "created": self.created,
            "system": self.system,
            "suite": self.suite,
            "glibc": self.glibc,
            "python": self.python,
            "python-version": self.python_version,
            "cuda": list(self.cuda),
            "env": dict(sorted(self.env.items())),
            "layers": [
                {"digest": y.digest, "size": y.size, "media-type": y.media_type, "diff-id": y.diff_id}
                for y in self.layers
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> BaseImage:
        """Check a table of a lock. Raises `RequestError` that names ``where`` and the key."""
        get = Table(data, "base.", where, _KEYS)

        def text(key: str, form: str = r"[^\x00-\x1f\x7f]*", like: str = "one line of text") -> str:
            found: str = get.text(key, None, lambda v: re.fullmatch(form, v), like)
            if found is None:
                raise RequestError(f"{get.where(key)}: missing")
            return found

        index = text("index", _DIGEST.pattern, _HEX) if "index" in data else None
        manifests, env = get.value("manifests", dict, {}), get.value("env", dict, {})
        for platform, digest in manifests.items():
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise RequestError(
                    f"{get.where('manifests')}.{platform}: {digest!r} is not a digest: expected {_HEX}"
                )
        for name, value in env.items():
            if not (_VARIABLE.fullmatch(name) and isinstance(value, str) and value.isprintable()):
                raise RequestError(f"{get.where('env')}.{name}: expected a name and one line of text")
        image = text("image")
        if Reference.parse(image) is None:
            raise RequestError(f"{get.where('image')}: {image!r} is not an image reference")
        layers = [parse_layer(y, get.where("layers", i)) for i, y in enumerate(get.value("layers", list, []))]
        if not layers:
            raise RequestError(f"{get.where('layers')}: missing")
        return cls(
            image=image,
            index=index,
            manifests=dict(sorted(manifests.items())),
            config=text("config", _DIGEST.pattern, _HEX),
            created=text("created"),
            system=text("system"),
            suite=text("suite", "[a-z]*", "a release's code name, or nothing"),
            glibc=text("glibc", r"[0-9]+\.[0-9]+", "a version like 2.36"),
            python=text("python", r"|(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)+", "an absolute path, or nothing"),
            python_version=text("python-version", f"|{_VERSION.pattern}", "a version, or nothing"),
            cuda=tuple(path for _, path in get.texts("cuda")),
            env=dict(sorted(env.items())),
            layers=tuple(layers),
        )


def parse_layer(data: Any, where: str) -> BaseLayer:
    """Check the table of a layer. Raises `RequestError` that names ``where`` and the key."""
    if not isinstance(data, dict):
        raise RequestError(f"{where}: expected a table")
    get = Table(data, "", where, _LAYER_KEYS)
    digest, diff_id = (get.text(key, "", _DIGEST.fullmatch, _HEX) for key in ("digest", "diff-id"))
    kind = get.text("media-type", "", lambda v: v in MEDIA_TYPES.values(), "the media type of a layer")
    if not (digest and diff_id and kind):
        raise RequestError(f"{where}: digest, diff-id and media-type are required")
    size = get.integer("size", 0, 1, MOST_BYTES)
    if not size:
        raise RequestError(f"{where}: size: missing")
    return BaseLayer(digest=digest, size=size, media_type=kind, diff_id=diff_id)


_TAR = "application/vnd.oci.image.layer.v1.tar"
MEDIA_TYPES = {
    "application/vnd.docker.image.rootfs.diff.tar": _TAR,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": f"{_TAR}+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd": f"{_TAR}+zstd",
    **{each: each for each in (_TAR, f"{_TAR}+gzip", f"{_TAR}+zstd")},
}
"""Media type of a layer → OCI's name of it: the bytes are the same."""
