"""Unpack a layer's tar into a folder, without following any link that the tar created.

Every entry is opened, made or removed by its last name in an open folder, which is reached part by part, each
without following links (``openat`` and ``O_NOFOLLOW``). What is in the way of an entry is replaced by it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from ..host.descriptors import FOLDER, closing_descriptor
from ..oci.merge_layers import hold_link, made_anew, removed, removed_again
from ..oci.path_index import PathIndex
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Entry, Reader

_MARK, _OPAQUE, _OTHER_MARKS = ".wh.", ".wh..wh..opq", ".wh..wh."
_FOLDER = FOLDER | os.O_NOFOLLOW
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IMPLIED_MODE = 0o755
"""Of a folder that no entry names, as other tools make it."""
_OF_THE_ENTRY = (errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTDIR, errno.ELOOP, errno.ENOENT, errno.EILSEQ)
"""What the kernel says where the entry is at fault, not the disk; nobody else writes in the folder."""


def unpack_entries(reader: Reader, root: int, *, owners: bool, opaque: str) -> None:
    """Make the entries of a layer in ``root``, an open and empty folder that nobody else can reach.

    ``owners`` says whether files get their owners, which takes root's rights. What the layer removes from
    those below (image-spec, layer.md, "Whiteouts") gets overlayfs's marks: a character device 0:0, or the
    extended attribute ``opaque`` of a folder. Raises `LayerRefused`, and `OSError` for what the disk refuses.
    """
    _Unpacking(root, owners=owners, opaque=opaque).run(reader)


class _Unpacking:
    def __init__(self, root: int, *, owners: bool, opaque: str) -> None:
        self._root, self._owners, self._opaque = root, owners, opaque
        self._folders: dict[str, Entry] = {}
        """Folders whose rights and times are set at the end: until then this process writes in them."""
        self._index = PathIndex()
        """Of those folders."""
        self._attributes: dict[int, str] = {}
        """Of files, by inode: they are not unpacked, but a hard link must not have others."""
        self._marks: list[str] = []
        self._parent = ""
        self._parent_fd = os.dup(root)

    def run(self, reader: Reader) -> None:
        try:
            for entry in reader:
                name = entry.path.rpartition("/")[2]
                with _blame(entry.path):
                    if name.startswith(_MARK):
                        self._marks.append(entry.path)
                        self._hold_mark(removed(entry.path))
                    elif entry.path and entry.kind != "device":  # a runtime brings the devices itself
                        self._make(entry, _bytes(name), reader)
            for path in self._marks:
                with _blame(path):
                    self._hide(path)
            for path in sorted(self._folders, reverse=True):
                with _blame(path):
                    self._finish_folder(self._folders[path])
        finally:
            os.close(self._parent_fd)

    def _hold_mark(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        try:
            parent = self._open(folder, make=False)
        except LayerRefused:
            return  # the folder is judged once all is there
        with closing_descriptor(parent):
            if name and (there := _mode(_bytes(name), parent)) is not None and not stat.S_ISDIR(there):
                raise LayerRefused(removed_again(path))

    def _make(self, entry: Entry, name: bytes, reader: Reader) -> None:
        parent = self._open_parent(entry.path)
        there = _mode(name, parent)
        if there is not None and not (entry.kind == "dir" and stat.S_ISDIR(there)):
            self._remove(entry.path, name, parent, is_folder=stat.S_ISDIR(there))
            parent = self._open_parent(entry.path)
            there = None
        match entry.kind:
            case "dir":
                if there is None:
                    os.mkdir(name, 0o700, dir_fd=parent)
                self._folders[entry.path] = entry
                self._index.add(entry.path)
            case "file":
                self._write(entry, name, parent, reader)
            case "hardlink":
                self._link(entry, name, parent)
            case "link":
                os.symlink(_bytes(entry.target), name, dir_fd=parent)
                self._dress(entry, name, parent, rights=False)
            case "fifo":
                os.mkfifo(name, 0o600, dir_fd=parent)
                self._dress(entry, name, parent, rights=True)

    def _write(self, entry: Entry, name: bytes, parent: int, reader: Reader) -> None:
        with closing_descriptor(os.open(name, NEW_FILE, 0o600, dir_fd=parent)) as descriptor:
            for chunk in reader.content():
                view = memoryview(chunk)
                while view:
                    view = view[os.write(descriptor, view) :]
            self._dress_open(entry, descriptor)
            # An inode may have been that of a file which is gone.
            self._attributes[os.fstat(descriptor).st_ino] = entry.attributes

    def _link(self, entry: Entry, name: bytes, parent: int) -> None:
        folder, _, first = entry.target.rpartition("/")
        with closing_descriptor(self._open(folder, make=False)) as descriptor:
            there = _mode(_bytes(first), descriptor) if first else None
            if there is None or stat.S_ISDIR(there):
                raise LayerRefused(
                    f"{entry.path!r} is a hard link to {entry.target!r}, which is not a file of this layer"
                )
            if stat.S_ISREG(there):
                self._hold_link(entry, os.stat(_bytes(first), dir_fd=descriptor, follow_symlinks=False))
            os.link(_bytes(first), name, src_dir_fd=descriptor, dst_dir_fd=parent, follow_symlinks=False)

    def _hold_link(self, entry: Entry, found: os.stat_result) -> None:
        owner = (found.st_uid, found.st_gid) if self._owners else (entry.uid, entry.gid)
        attributes = self._attributes.get(found.st_ino, "")
        hold_link(entry, stat.S_IMODE(found.st_mode), f"{owner[0]}:{owner[1]}", attributes)

    def _dress(self, entry: Entry, name: bytes, parent: int, *, rights: bool) -> None:
        if self._owners:
            os.chown(name, entry.uid, entry.gid, dir_fd=parent, follow_symlinks=False)
        if rights:
            os.chmod(name, entry.mode, dir_fd=parent)
        os.utime(name, (entry.mtime, entry.mtime), dir_fd=parent, follow_symlinks=False)

    def _finish_folder(self, entry: Entry) -> None:
        with closing_descriptor(self._open(entry.path, make=False)) as descriptor:
            self._dress_open(entry, descriptor)

    def _dress_open(self, entry: Entry, descriptor: int) -> None:
        if self._owners:
            os.fchown(descriptor, entry.uid, entry.gid)
        os.fchmod(descriptor, entry.mode)  # behind the owner, whose change takes the setuid bit away
        os.utime(descriptor, (entry.mtime, entry.mtime))

    def _hide(self, path: str) -> None:
        name = path.rpartition("/")[2]
        parent = self._open_parent(path)
        if name == _OPAQUE:
            os.setxattr(parent, self._opaque, b"y")
            return
        if name.startswith(_OTHER_MARKS):
            return  # AUFS's own records
        target = name.removeprefix(_MARK)
        if target in ("", ".", ".."):
            raise LayerRefused(f"{path!r} removes nothing that has a name")
        hidden = _bytes(target)
        there = _mode(hidden, parent)
        if there is None:
            os.mknod(hidden, stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent)
        elif stat.S_ISDIR(there):
            folder = f"{path.rpartition('/')[0]}/{target}".lstrip("/")
            if f"{folder}/{_OPAQUE}" not in self._marks:
                raise LayerRefused(made_anew(folder))

    def _remove(self, path: str, name: bytes, parent: int, *, is_folder: bool) -> None:
        if not is_folder:
            os.unlink(name, dir_fd=parent)
            return
        shutil.rmtree(name, dir_fd=parent)
        for each in (path, *self._index.take_below(path)):
            self._folders.pop(each, None)
        self._forget_parent()

    def _open_parent(self, path: str) -> int:
        """Return the folder of a path, made where no entry has named it; the latest one stays open."""
        folder = path.rpartition("/")[0]
        if folder != self._parent:
            descriptor = self._open(folder, make=True)
            os.close(self._parent_fd)
            self._parent, self._parent_fd = folder, descriptor
        return self._parent_fd

    def _forget_parent(self) -> None:
        os.close(self._parent_fd)
        self._parent, self._parent_fd = "", os.dup(self._root)

    def _open(self, path: str, *, make: bool) -> int:
        here = os.dup(self._root)
        done: list[str] = []
        for name in path.split("/") if path else ():
            done.append(name)
            if name.startswith(_MARK):
                os.close(here)
                raise LayerRefused(f"{'/'.join(done)!r} removes a file, and has others in it")
            try:
                encoded = _bytes(name)
                if make and _mode(encoded, here) is None:
                    os.mkdir(encoded, dir_fd=here)
                    os.chmod(encoded, _IMPLIED_MODE, dir_fd=here)  # whatever the umask
                below = os.open(encoded, _FOLDER, dir_fd=here)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENOENT):
                    raise LayerRefused(f"{'/'.join(done)!r} is not a folder, but has files in it") from None
                raise
            finally:
                os.close(here)
            here = below
        return here


def _bytes(name: str) -> bytes:
    """Return a name as the tar has it, in any locale."""
    return name.encode("utf-8", "surrogateescape")


def _mode(name: bytes, folder: int) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _blame(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _OF_THE_ENTRY:
            raise LayerRefused(f"{path!r}: {os.strerror(error.errno or 0)}") from None
        raise
