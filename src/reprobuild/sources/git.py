"""git: resolve a ref, and read the files of a commit without a checkout, so that nothing of it is run.

Logins are git's own: credential helpers, ssh keys, ~/.netrc. git holds every object to its hash; what it has
got is held to the commit, and by the lock to the SHA-256 of the archive.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin, urlsplit

from ..errors import FetchError, ResolveError
from ..host.home import open_regular
from ..host.process import OUTPUT_LIMIT, Completed, Guarding, LimitReached, ProcessTimeout, require, run
from ..host.repository import git_environment
from ..host.untrusted_files import size_below
from ..lock.packages import COMMIT
from ..net.index_settings import proxy_environment
from ..net.scrubbing import scrub, without_credentials
from ..net.transport import SLOWEST, WINDOW
from .source_tree import MOST_BYTES, MOST_FILES, TreeEntry

_SECONDS = 900.0
"""For all that a commit needs, its submodules too."""
MOST_FETCHED = 4 << 30
"""Bytes of all that git fetches for one commit; a large repository with all of its history has 2 GB."""
_MOST_MEMORY = 4 << 30
"""Bytes of memory for a git that talks to a server: it holds the list of refs whole, however long."""
_DEEPEST = 8
"""Submodules within submodules."""

_SCHEMES = ("https", "http", "ssh")

# No prompt, no program of a repository's own settings, no protocol that reads this machine's files.
_SETTINGS = (
    *("protocol.allow=never", "protocol.https.allow=always", "protocol.http.allow=always"),
    *("protocol.ssh.allow=always", "core.fsmonitor=false", "core.hooksPath=/dev/null"),
    *("fetch.fsckObjects=true", "submodule.recurse=false", "gc.auto=0", "maintenance.auto=false"),
    # As every other peer is held to: see `net.transport`.
    *(f"http.lowSpeedLimit={SLOWEST}", f"http.lowSpeedTime={WINDOW:.0f}"),
    # Whatever comes is one file, which a limit of the size of files bounds.
    *("fetch.unpackLimit=1", "transfer.unpackLimit=1"),
)

RefKind = Literal["commit", "tag", "branch", "HEAD"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a ref names on a server."""

    commit: str
    kind: RefKind


def resolve_ref(url: str, ref: str) -> Found:
    """Return the commit that a ref names now: a branch, a tag, a whole commit, or HEAD where it is empty.

    Raises `ResolveError` where the server has none of that name, or cannot be reached.
    """
    if COMMIT.fullmatch(ref):
        return Found(ref, "commit")
    names = [f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/tags/{ref}^{{}}"] if ref else ["HEAD"]
    shown = without_credentials(url)
    try:
        done = _git(["ls-remote", url, *names], guard=_Memory())
    except FetchError as late:
        raise FetchError(f"{shown}: {late.message}", hint=late.hint) from None
    if done.returncode != 0:
        raise _unreached(shown, done)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    refs = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    order: tuple[tuple[str, RefKind], ...] = (
        ("HEAD", "HEAD"),
        (f"refs/tags/{ref}^{{}}", "tag"),
        (f"refs/tags/{ref}", "tag"),
        (f"refs/heads/{ref}", "branch"),
    )
    for name, kind in order:
        commit = refs.get(name, "")
        if COMMIT.fullmatch(commit):
            return Found(commit, kind)
    short = re.fullmatch(r"[0-9a-f]{4,39}", ref) is not None
    raise ResolveError(
        f"{shown}: has no branch or tag {ref!r}" if ref else f"{shown}: has no HEAD, so it is empty",
        hint="a commit must be named by all of its 40 digits"
        if short
        else "name a branch, a tag or a whole commit",
    )


def read_commit(url: str, commit: str, ref: str, folder: Path) -> list[TreeEntry]:
    """Return the files of a commit, those of its submodules too; ``folder`` is an empty one to work in.

    ``ref`` is where it was found, by which older servers give it. Raises `FetchError` where the server no
    longer has it, `ResolveError` where it cannot be reached.
    """
    budget = _Budget(folder, without_credentials(url))
    return list(_read(url, commit, ref, budget, ()))


class _Memory:
    """Limits git to `_MOST_MEMORY`; a guard of `run`."""

    limits: Sequence[str] = ()

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return a command that fails where it would take more."""
        limits = [f"--data={_MOST_MEMORY}", *self.limits]
        return [require("prlimit", "to read from a git server"), *limits, "--", *argv]

    def reached(self, process_id: int) -> str | None:  # noqa: ARG002 -- git tells it by itself
        """Return None: git ends at its limits by itself."""
        return None


class _Budget(_Memory):
    """Limits all fetches of one commit to `MOST_FETCHED` and `_SECONDS`; a guard of `run`."""

    def __init__(self, folder: Path, shown: str) -> None:
        self.folder, self._shown = folder, shown
        self.limits = (f"--fsize={MOST_FETCHED}",)  # no larger file, however fast it comes
        self._end = time.monotonic() + _SECONDS

    def reached(self, process_id: int) -> str | None:  # noqa: ARG002 -- the folder tells
        """Raise an error if the folder is too large or the time limit has passed."""
        if size_below(self.folder) >= MOST_FETCHED:
            return f"it has more than {MOST_FETCHED:,} bytes"
        if time.monotonic() > self._end:
            return f"it was not fetched within {_SECONDS:g} s"
        return None

    def fetch(self, way: Sequence[str], repository: Path) -> Completed:
        """Run a ``git fetch``. Raises `FetchError` at a limit."""
        try:
            return _git(way, repository, guard=self)
        except LimitReached as stopped:
            raise FetchError(
                f"{self._shown}: {stopped.reason}",
                hint="name an archive of the sources by its URL, or a package of an index",
            ) from None


def _read(url: str, commit: str, ref: str, budget: _Budget, above: tuple[bytes, ...]) -> Iterator[TreeEntry]:
    """Yield the files of a commit; ``above`` are the paths of the submodules that it is in."""
    depth, below = len(above), b"".join(path + b"/" for path in above)
    if depth > _DEEPEST:
        raise FetchError(f"{without_credentials(url)}: submodules are nested more than {_DEEPEST} deep")
    repository = budget.folder / f"{depth}-{len(list(budget.folder.iterdir()))}"
    _fetch(url, commit, ref, repository, budget)
    blobs: list[tuple[bytes, str, bytes]] = []
    total = 0
    modules: dict[bytes, str] = {}
    listed = _checked(["ls-tree", "-r", "-z", "-l", "--full-tree", commit], repository, url)
    for line in filter(None, listed.stdout.split(b"\0")):
        head, _, path = line.partition(b"\t")
        mode, kind, name, size = head.split()
        if kind == b"commit":
            modules[path] = name.decode()
            continue
        blobs.append((mode, name.decode(), path))
        total += int(size)
    if total > MOST_BYTES or len(blobs) > MOST_FILES:
        raise FetchError(
            f"{without_credentials(url)}: commit {commit[:12]} has more than {MOST_FILES:,} files, or "
            f"{MOST_BYTES >> 20} MiB"
        )
    names = "".join(f"{name}\n" for _, name, _ in blobs)
    contents = _checked(["cat-file", "--batch"], repository, url, stdin=names.encode(), limit=2 * MOST_BYTES)
    for (mode, _, path), content in zip(blobs, _contents(contents.stdout), strict=True):
        kind_of = {b"120000": "link", b"100755": "executable"}.get(mode, "file")
        yield TreeEntry(below + path, kind_of, content)  # type: ignore[arg-type]
    if modules:
        addresses = _module_addresses(url, commit, repository)
        for path, inner in sorted(modules.items()):
            if path not in addresses:
                raise FetchError(
                    f"{without_credentials(url)}: {path.decode('utf-8', 'replace')} is a submodule, and "
                    f".gitmodules does not say where it comes from"
                )
            yield from _read(addresses[path], inner, "", budget, (*above, path))


def _contents(data: bytes) -> Iterator[bytes]:
    """Yield the objects of ``git cat-file --batch``."""
    position = 0
    while position < len(data):
        end = data.index(b"\n", position)
        size = int(data[position:end].split()[2])
        yield data[end + 1 : end + 1 + size]
        position = end + 1 + size + 1


def _fetch(url: str, commit: str, ref: str, repository: Path, budget: _Budget) -> None:
    """Get one commit, by its hash where the server lets one, else by the ref, else with all refs."""
    form = "sha256" if len(commit) == 64 else "sha1"
    _git(["init", "--quiet", "--bare", f"--object-format={form}", str(repository)], check=True)
    base = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
    ways = [[*base, "--depth=1", url, commit]]
    ways += [
        [*base, "--depth=1", url, name] for name in ((f"refs/heads/{ref}", f"refs/tags/{ref}") if ref else ())
    ]
    ways += [[*base, url, "+refs/*:refs/reprobuild/*"]]
    said: Completed | None = None
    for way in ways:
        done = budget.fetch(way, repository)
        said = said or done
        if _has(commit, repository):
            return
        if done.returncode != 0 and _UNREACHED.search(done.stderr):
            raise _unreached(without_credentials(url), done)
    assert said is not None
    raise FetchError(
        f"{without_credentials(url)}: the commit {commit} was not found: {_last(said)}",
        hint="if its history was rewritten, name another commit, and lock again with --upgrade",
    )


_UNREACHED = re.compile(
    rb"unable to access|Could not resolve|Authentication failed|could not read|Permission denied|not found"
)


def _has(commit: str, repository: Path) -> bool:
    done = _git(["rev-parse", "--quiet", "--verify", f"{commit}^{{commit}}"], repository)
    return done.returncode == 0 and done.stdout.decode().strip() == commit


def _module_addresses(url: str, commit: str, repository: Path) -> dict[bytes, str]:
    """Return where submodules come from, by path, as .gitmodules says; relative addresses are the parent's.

    Raises `FetchError` for one that is not an https, http or ssh address.
    """
    command = [
        "config",
        "--blob",
        f"{commit}:.gitmodules",
        "--null",
        "--get-regexp",
        r"^submodule\..*\.(path|url)$",
    ]
    done = _git(command, repository)
    found: dict[bytes, dict[bytes, bytes]] = {}
    for line in filter(None, done.stdout.split(b"\0")):
        key, _, value = line.partition(b"\n")
        name, _, field = key.removeprefix(b"submodule.").rpartition(b".")
        found.setdefault(name, {})[field] = value
    addresses = {}
    for fields in found.values():
        if b"path" in fields and b"url" in fields:
            addresses[fields[b"path"]] = _module_address(fields[b"url"].decode("utf-8", "replace"), url)
    return addresses


def _module_address(text: str, parent: str) -> str:
    if text.startswith(("./", "../")):
        text = urljoin(parent.rstrip("/") + "/", text)
    scp = re.fullmatch(r"(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9.-]+):(?!//)([^-].*)", text)
    if scp is not None:
        text = f"ssh://{scp[1] or 'git'}@{scp[2]}/{scp[3]}"
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in _SCHEMES and bool(parts.hostname) and text.isprintable()
    except ValueError:
        is_address = False
    if not is_address:
        raise FetchError(
            f"{without_credentials(parent)}: a submodule comes from {text!r}, which is not an https, http "
            "or ssh address"
        )
    return text


def tracked(folder: Path) -> list[TreeEntry]:
    """Return the files of a folder that git tracks, as they are on disk now, those of submodules too.

    Raises `ResolveError` where it is in no repository, or changes while it is read.
    """
    shown = str(folder)
    before = _listing(folder, shown)
    if sum(state[1] for _, state in before) > MOST_BYTES:
        raise ResolveError(f"{shown}: what git tracks in it has more than {MOST_BYTES >> 20} MiB")
    found = []
    top = folder.resolve()
    for path, _ in before:
        file = folder / os.fsdecode(path)
        if not file.parent.resolve().is_relative_to(top):
            raise ResolveError(f"{shown}: {os.fsdecode(path)} is in a folder that leads outside it")
        if file.is_symlink():
            found.append(TreeEntry(path, "link", os.fsencode(file.readlink())))
        else:
            with open_regular(file) as opened:
                content = opened.read(MOST_BYTES + 1)
            found.append(TreeEntry(path, "executable" if file.stat().st_mode & 0o100 else "file", content))
    if _listing(folder, shown) != before:
        raise ResolveError(
            f"{shown}: changed while it was read", hint="wait until nothing writes to it, and try again"
        )
    return found


def _listing(folder: Path, shown: str) -> list[tuple[bytes, tuple[int, ...]]]:
    """Return the tracked files that are there, with what tells whether they change."""
    done = _git(["ls-files", "-z", "--cached", "--recurse-submodules", "--", "."], inside=folder)
    if done.returncode != 0:
        raise ResolveError(
            f"{shown}: git does not know which files belong to it: {_last(done)}",
            hint="a folder is locked by the files that git tracks: git init && git add .",
        )
    found: list[tuple[bytes, tuple[int, ...]]] = []
    for path in sorted(set(filter(None, done.stdout.split(b"\0")))):
        try:
            state = (folder / os.fsdecode(path)).lstat()
        except FileNotFoundError:
            continue  # deleted, and not committed
        found.append((path, (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ino)))
    return found


def _checked(
    command: Sequence[str], repository: Path, url: str, *, stdin: bytes = b"", limit: int = 0
) -> Completed:
    done = _git(command, repository, stdin=stdin, limit=limit)
    if done.returncode != 0:
        raise FetchError(f"{without_credentials(url)}: git cannot read what it fetched: {_last(done)}")
    return done


def _git(
    command: Sequence[str],
    repository: Path | None = None,
    *,
    stdin: bytes = b"",
    limit: int = 0,
    check: bool = False,
    guard: Guarding | None = None,
    inside: Path | None = None,
) -> Completed:
    """Run git on a repository of our own, or in a folder of a stranger's, for which it fetches nothing.

    Elsewhere it sees no repository: the one that the user is in may be a stranger's too.
    """
    program = require("git", "for packages that come from git, and for folders")
    env = {**proxy_environment(), **git_environment(fetches=inside is None)}
    env.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    words = [program, *(word for setting in _SETTINGS for word in ("-c", setting))]
    words += [f"--git-dir={repository}"] if repository is not None else []
    try:
        return run(
            [*words, *command],
            env=env,
            cwd=inside or Path("/"),
            stdin=stdin,
            timeout=_SECONDS,
            check=check,
            limit=limit or OUTPUT_LIMIT,
            guard=guard,
        )
    except ProcessTimeout as error:
        raise FetchError(f"{error.message}", hint="the server may be slow; try again") from None


def _last(done: Completed) -> str:
    """Return git's reason for a failure: its first error, otherwise the last line."""
    lines = [
        line.strip() for line in scrub(done.stderr.decode("utf-8", "replace")).splitlines() if line.strip()
    ]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return errors[0] if errors else lines[-1].removeprefix("fatal: ") if lines else "git said nothing"


def _unreached(shown: str, done: Completed) -> ResolveError:
    return ResolveError(
        f"{shown}: git cannot read it: {_last(done)}",
        hint="check the address, the network and proxy, and the login in git's own settings, ~/.netrc or ssh",
    )
