"""The command ``bundle``."""

from __future__ import annotations

from pathlib import Path

import click

from ..bundle.mirror import DEBIAN, SIMPLE, lay_out
from ..bundle.read import read_head
from ..bundle.rehearse import Built, rehearse
from ..bundle.write import lock_names, write_bundle
from ..errors import BuildError, DifferenceError
from ..host.console import size_text
from ..host.host import Host
from ..oci.store import ImageStore
from ..pipeline.steps import warn_of_other_files
from ..render.labels import LABEL
from . import complete
from .options import locks_of
from .output import as_json, emit, file_option, table


@click.command()
@click.argument("locks", nargs=-1, metavar="[LOCK|ENV]...", shell_complete=complete.locks)
@file_option("-o", "--output", text="File to write.")
@file_option("--check", text="Build the images of this bundle in an empty home, without a network.")
@click.option(
    "--mirror",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="FILE FOLDER",
    help="Lay this bundle out in a new folder: a package index for pip and uv, an archive for apt.",
)
@as_json
@click.pass_obj
def bundle(
    host: Host,
    /,
    locks: tuple[str, ...],
    *,
    output: Path | None,
    check: Path | None,
    mirror: tuple[Path, Path] | None,
    json_: bool,
) -> None:
    """Write everything that images are built from into one archive.

    That is each file that the locks name, reprobuild itself, and what it needs to run. `image --bundle FILE`
    builds from it without a network, and its README says how to install reprobuild from it. The same locks
    and the same reprobuild give the same file, as long as Debian offers the same crun and mmdebstrap.

    \b
    reprobuild bundle envs/frames.toml envs/torch-cpu.toml -o team.bundle.tar
    reprobuild bundle --check team.bundle.tar
    reprobuild bundle --mirror team.bundle.tar mirror
    reprobuild image --bundle team.bundle.tar frames
    """
    if [output, check, mirror].count(None) != 2 or bool(locks) != (output is not None):
        raise click.UsageError(
            "give locks and -o FILE to write a bundle, --check FILE, or --mirror FILE FOLDER"
        )
    if mirror is not None:
        _mirror(*mirror, host, json_=json_)
        return
    if check is not None:
        _check(check, host, json_=json_)
        return
    assert output is not None
    named = lock_names(locks, [locks_of(text) for text in locks])
    for platforms in named.values():
        warn_of_other_files(platforms[0], host)
    written = write_bundle(named, output, host)
    if json_:
        emit(
            {
                "file": str(output),
                "sha256": written.sha256,
                "size": written.size,
                "members": len(written.manifest.members),
                "locks": {name: [lock.digest for lock in each] for name, each in named.items()},
            }
        )
        return
    rows = [(name, lock.digest) for name, each in named.items() for lock in each]
    size = f"{size_text(written.size)} in {len(written.manifest.members)} members"
    table("", [("bundle", str(output)), ("sha256", written.sha256), ("size", size), *rows])


def _check(file: Path, host: Host, *, json_: bool) -> None:
    here = {image.labels.get(LABEL + "lock"): image.digest for image in ImageStore(host).images()}
    rows: list[tuple[str, str]] = []
    found: list[dict[str, str | None]] = []
    head = read_head(file)
    for built in rehearse(head, host):
        expected = here.get(built.lock)
        _compare(built, expected, file)
        rows.append((built.name, f"{built.digest}{', as here' if expected else ''}"))
        found.append(
            {"name": built.name, "lock": built.lock, "digest": built.digest, "digest_here": expected}
        )
    if not found:
        raise BuildError(
            f"{file}: nothing in it is for this machine, so nothing was built and nothing is proven",
            hint="check it on a machine of an architecture that its locks are for",
        )
    names = {name.removeprefix("pylock.").removesuffix(".toml") for name in head.locks}
    lacking = sorted(names - {name for name, _ in rows})
    if json_:
        emit({"file": str(file), "images": found, "not_built": lacking})
        return
    rows += [(name, "not built: not for this machine") for name in lacking]
    part = f" for {len(found)} of {len(names)} locks" if lacking else ""
    table("", [("bundle", f"{file} suffices{part}"), *rows])


def _mirror(file: Path, folder: Path, host: Host, *, json_: bool) -> None:
    found = lay_out(read_head(file), folder, host)
    python = sum(map(len, found.python.values()))
    debian = {suite: len(packages) for suite, packages in sorted(found.debian.items())}
    if json_:
        emit({"mirror": str(folder), "python": python, "debian": debian, "left_out": list(found.left_out)})
        return
    rows = [("mirror", str(folder)), ("for pip, uv", f"{python} files in {folder / SIMPLE}")]
    rows += [("for apt", f"{count} packages in {folder / DEBIAN / suite}") for suite, count in debian.items()]
    rows += [("left out", name) for name in found.left_out]
    table("", rows)


def _compare(built: Built, expected: str | None, file: Path) -> None:
    if expected not in (None, built.digest):
        raise DifferenceError(
            f"{built.name} from {file} is {built.digest}, and the image of that lock here is {expected}",
            hint="another release of reprobuild made one of them: `reprobuild compare` shows the files",
        )
