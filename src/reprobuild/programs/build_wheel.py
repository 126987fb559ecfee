"""Builds one wheel. Runs by itself in a sandbox, by the root's own Python; `sandboxed.build` starts it there.

``program.py JSON``, an object with

- ``asked``: null, or what the backend's ``get_requires_for_build_wheel`` may ask for: that is installed;
- ``archive``: the source archive, which the host has looked through;
- ``wheels``: what to install first, ``pip``: the wheel that installs it;
- ``cuda``: null, or the folder that is laid out as CUDA_HOME, of NVIDIA's wheels;
- ``backend``, ``backend_path``: by PEP 517; ``subdirectory`` of the archive, or empty;
- ``folder``: an empty folder, all that the build may write to; ``out``: the file that gets the wheel;
- ``metadata``: whether to make the metadata alone;
- ``epoch``: the time stamp of the unpacked files; ``second``: whether to begin from another state, in which
  the files are unpacked in the opposite order and another processor does the work.

Writes one JSON object to standard output: ``{"wheel": NAME}``; ``{"metadata": NAME}``, then ``out`` has the
file METADATA, or null for a backend that cannot make it alone; ``{"requires": [...]}`` where the backend asks
for more than was ``asked``; or ``{"failed": "install" | "unpack" | "backend"}``, and then what there is to
say is on standard error. What a backend prints goes there too. Standard library only.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Any

SETTLED = """
import datetime as _datetime
import os
import time
_listdir, _scandir = os.listdir, os.scandir
def listdir(path="."):
    return sorted(_listdir(path))
class scandir:
    def __init__(self, path="."):
        with _scandir(path) as found:
            self._entries = iter(sorted(found, key=lambda entry: entry.name))
    def __iter__(self):
        return self
    def __next__(self):
        return next(self._entries)
    def __enter__(self):
        return self
    def __exit__(self, *exc):
        self.close()
    def close(self):
        self._entries = iter(())
os.listdir, os.scandir = listdir, scandir
class dated:  # no function, which would become a method in a class, as in logging's
    def __init__(self, call, place, now):
        self._call, self._place, self._now = call, place, now
    def __call__(self, *args):
        if len(args) <= self._place or args[self._place] is None:
            args = (*args[:self._place], self._now)
        return self._call(*args)
_epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
_day = time.gmtime(_epoch)
time.gmtime, time.localtime = dated(time.gmtime, 0, _epoch), dated(time.localtime, 0, _epoch)
time.ctime, time.asctime = dated(time.ctime, 0, _epoch), dated(time.asctime, 0, _day)
time.strftime = dated(time.strftime, 1, _day)
_plain = {"date": _datetime.date, "datetime": _datetime.datetime}
class _like_plain(type):  # what C code makes is of the plain class
    def __instancecheck__(cls, value):
        plain = _plain[cls.__name__] if cls in _settled else None
        return type.__instancecheck__(cls, value) if plain is None else isinstance(value, plain)
    def __subclasscheck__(cls, other):
        plain = _plain[cls.__name__] if cls in _settled else None
        return type.__subclasscheck__(cls, other) if plain is None else issubclass(other, plain)
class date(_datetime.date, metaclass=_like_plain):
    def __repr__(self):
        return ("datetime." if type(self) in _settled else "") + super().__repr__()
    @classmethod
    def today(cls):
        return cls.fromtimestamp(_epoch)
class datetime(_datetime.datetime, metaclass=_like_plain):
    def __repr__(self):
        return ("datetime." if type(self) in _settled else "") + super().__repr__()
    @classmethod
    def today(cls):
        return cls.fromtimestamp(_epoch)
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_epoch, tz)
    @classmethod
    def utcnow(cls):
        return cls(1970, 1, 1) + _datetime.timedelta(seconds=_epoch)
_settled = (date, datetime)
for _each in _settled:
    _each.__module__ = "datetime"
    setattr(_datetime, _each.__name__, _each)
"""
"""Loaded by every Python of the build: the order of a folder's entries is the file system's, and changes with
the kernel; and what time it is, as a date, is SOURCE_DATE_EPOCH to whoever asks the module ``time``, for a
stamp, or the classes of ``datetime``. Counters (``time.time()``) go on: builds measure and wait with them."""


def main() -> int:
    """Run the command of the argument; exit with 0 if it produced a wheel or a list."""
    task = json.loads(sys.argv[1])
    if sys.argv[2:] == ["hook"]:
        return hook(task)
    os.umask(0o022)
    # A backend that prints, or a compiler that it starts, must not be taken for us.
    said = os.dup(1)
    os.dup2(2, 1)
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[-1] if task["second"] else processors[0]})
    outcome = run(task)
    os.write(said, json.dumps(outcome).encode())
    return 1 if "failed" in outcome else 0


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Install, unpack, and call the backend in a Python of its own."""
    folder = Path(task["folder"])
    for name in ("home", "tmp", "wheel"):
        (folder / name).mkdir()
    python = folder / "env/bin/python"
    try:
        install(task, folder / "env", python)
    except subprocess.CalledProcessError:
        return {"failed": "install"}
    if task["cuda"] is not None:
        lay_out_cuda(folder / "env", Path(task["cuda"]))
    # Asking may leave files behind, so it gets an unpacked archive of its own, which is then removed.
    last = "metadata" if task["metadata"] else "wheel"
    for hook_ in ("requires", last) if task["asked"] is not None else (last,):
        try:
            top = unpack(Path(task["archive"]), folder / "src", task["epoch"], backwards=task["second"])
        except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            return {"failed": "unpack"}
        outcome = called(hook_, task, top / task["subdirectory"], python)
        if hook_ == "requires":
            shutil.rmtree(folder / "src")
            if "failed" in outcome or set(outcome["requires"]) - set(task["asked"]):
                return outcome
    made = None
    if "wheel" in outcome:
        made = folder / "wheel" / outcome["wheel"]
    elif outcome.get("metadata") is not None:
        made = folder / "wheel" / outcome["metadata"] / "METADATA"
    if made is not None:
        with made.open("rb") as content, Path(task["out"]).open("r+b") as out:
            shutil.copyfileobj(content, out)
    return outcome


def called(hook_: str, task: dict[str, Any], source: Path, python: Path) -> dict[str, Any]:
    """Call a hook in a process of its own, as PEP 517 wants it; return what it wrote."""
    result = Path(task["folder"], "result.json")
    result.unlink(missing_ok=True)
    told = {**task, "hook": hook_, "source": str(source), "result": str(result)}
    done = subprocess.run([python, __file__, json.dumps(told), "hook"], stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0 or not result.is_file():
        if done.returncode < 0:
            sys.stderr.write(f"ended by signal {-done.returncode}\n")
        return {"failed": "backend"}
    outcome: dict[str, Any] = json.loads(result.read_text("utf-8"))
    return outcome


def install(task: dict[str, Any], env: Path, python: Path) -> None:
    """Create an environment with the build requirements, without downloads."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", env], check=True)
    site = next(env.glob("lib/python*/site-packages"))
    (site / "_reprobuild_settled.py").write_text(SETTLED, "utf-8")
    (site / "_reprobuild_settled.pth").write_text("import _reprobuild_settled\n", "utf-8")
    command = [str(python), "-I", f"{task['pip']}/pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore"]
    if task["wheels"]:
        subprocess.run([*command, *task["wheels"]], stdin=subprocess.DEVNULL, check=True)


def lay_out_cuda(env: Path, home: Path) -> None:
    """Lay out what NVIDIA's wheels have installed as a CUDA toolkit: bin, include, nvvm, lib and lib64.

    Libraries get the names by which a linker looks for them: libcudart.so beside libcudart.so.13.
    """
    home.mkdir()
    (home / "lib").mkdir()
    (home / "lib64").symlink_to("lib")
    for top in sorted(env.glob("lib/python*/site-packages/nvidia/cu[0-9]*")):
        for path in sorted(top.iterdir()):
            if path.name not in ("lib", "lib64"):
                (home / path.name).symlink_to(path)
        for path in sorted((top / "lib").glob("*")):
            (home / "lib" / path.name).symlink_to(path)
            plain = home / "lib" / f"{path.name.partition('.so.')[0]}.so"
            if ".so." in path.name and not plain.is_symlink():
                plain.symlink_to(path)


def hook(task: dict[str, Any]) -> int:
    """Call one hook of the backend, in its environment."""
    os.chdir(task["source"])
    sys.argv = sys.argv[:1]
    # The folder of this file, which Python puts first, is none of the backend's.
    sys.path[0:1] = [str(Path(task["source"], part)) for part in task["backend_path"]]
    module, _, path = task["backend"].partition(":")
    backend: Any = importlib.import_module(module)
    for part in path.split(".") if path else ():
        backend = getattr(backend, part)
    outcome: dict[str, Any]
    if task["hook"] == "requires":
        ask = getattr(backend, "get_requires_for_build_wheel", None)
        outcome = {"requires": [] if ask is None else [str(each) for each in ask(None)]}
    elif task["hook"] == "metadata":
        prepare = getattr(backend, "prepare_metadata_for_build_wheel", None)
        name = None if prepare is None else prepare(str(Path(task["folder"], "wheel")), None)
        outcome = {"metadata": None if name is None else Path(str(name)).name}
    else:
        name = backend.build_wheel(str(Path(task["folder"], "wheel")), None, None)
        outcome = {"wheel": Path(str(name)).name}
    Path(task["result"]).write_text(json.dumps(outcome), "utf-8")
    return 0


def unpack(archive: Path, folder: Path, epoch: int, *, backwards: bool) -> Path:
    """Unpack a source archive with plain modes and one time stamp; return its one folder at the top."""
    folder.mkdir()
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            infos = [info for info in opened.infolist() if not info.is_dir()]
            for info in reversed(infos) if backwards else infos:
                with opened.open(info) as content:
                    write(folder, info.filename, content, executable=bool(info.external_attr >> 16 & 0o100))
    else:
        with tarfile.open(archive) as tar:
            members = [member for member in tar if not member.isdir()]
            for member in reversed(members) if backwards else members:
                if member.issym():
                    link = place(folder, member.name)
                    link.symlink_to(member.linkname)
                    continue
                found = tar.extractfile(member)
                if found is None:
                    raise ValueError(f"{member.name!r} is neither a file nor a link")
                write(folder, member.name, found, executable=bool(member.mode & 0o100))
    for path in folder.rglob("*"):
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    tops = list(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise ValueError("expected one folder at the top of the archive")
    return tops[0]


def place(folder: Path, name: str) -> Path:
    """Return where a member goes, its folders made. ValueError for one that would go elsewhere."""
    path = Path(os.path.normpath(name))
    if path.is_absolute() or path.parts[:1] == ("..",):
        raise ValueError(f"{name!r} is outside the archive's folder")
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if folder.resolve() not in (target.parent.resolve(), *target.parent.resolve().parents):
        raise ValueError(f"{name!r} is outside the archive's folder")
    target.unlink(missing_ok=True)
    return target


def write(folder: Path, name: str, content: IO[bytes], *, executable: bool) -> None:
    """Write one file of the archive."""
    target = place(folder, name)
    with target.open("xb") as out:
        shutil.copyfileobj(content, out)
    target.chmod(0o755 if executable else 0o644)


if __name__ == "__main__":
    sys.exit(main())
