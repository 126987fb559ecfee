"""User of an image: its lines in two files of /etc, and its home directory."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BuildError
from ..oci.extract_file import file_of_layers
from ..oci.tar_fields import LayerRefused
from ..oci.tar_writer import LayerWriter, parents
from ..request.image_user import ImageUser
from .cache import Cached, LayerCache

_LARGEST = 1 << 20
"""Bytes of either file."""


def write_user(user: ImageUser, below: Sequence[Cached], cache: LayerCache, out: LayerWriter) -> None:
    """Write them on top of some layers, lowest first. The same layers and user give the same entries.

    Raises `BuildError` where the system below has no such files, or has the name, the number or the home
    directory already.
    """
    known = {record.path: record for layer in below for record in layer.records}
    home = user.home.lstrip("/")
    if home in known:
        raise BuildError(f"user {user}: the image has {user.home} already", hint="take another name")
    contents = {}
    for path, line in user.lines.items():
        found = next(
            (layer for layer in reversed(below) if any(record.path == path for record in layer.records)), None
        )
        content = None if found is None else _content(cache, found, path)
        if content is None or len(content) > _LARGEST or not content.endswith(b"\n"):
            raise BuildError(
                f"user {user}: /{path} of the image is missing, or is not a file of lines",
                hint="leave the key `user` out, and add the user in a Dockerfile of your own",
            )
        for other in content.decode("utf-8", "replace").splitlines():
            if {user.name, str(user.number)} & {*other.split(":")[:3:2]}:
                raise BuildError(
                    f"user {user}: /{path} has that name or number already: {other}",
                    hint="take another name, or another number from 1000 to 59999",
                )
        contents[path] = content + line.encode()
    for folder in parents(
        [*contents, home]
    ):  # as below: an entry that is left out gets the time of unpacking
        uid, _, gid = known[folder].owner.partition(":") if folder in known else ("0", "", "0")
        out.folder(folder, known[folder].mode if folder in known else 0o755, uid=int(uid), gid=int(gid))
    for path, content in contents.items():
        out.file(path, 0o644, len(content), [content])
    out.folder(home, uid=user.number, gid=user.number)


def _content(cache: LayerCache, layer: Cached, path: str) -> bytes | None:
    try:
        return file_of_layers([cache.blob(layer.layer.digest)], path)
    except LayerRefused as refused:
        raise BuildError(f"/{path} of the image cannot be read: {refused}", hint="run it again") from None
