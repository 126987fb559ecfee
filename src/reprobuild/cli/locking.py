"""The commands on requests and locks: ``lock``, ``render``, ``completion``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..errors import ImageError, LockError, ReprobuildError, RequestError, StorageError
from ..host.home import atomic_write, make_folders, size_text, storage_errors
from ..host.host import Host
from ..lock.conda_lock import write_conda_lock
from ..lock.model import Lock
from ..pipeline import lock_env, lock_to_build, warn_of_other_files, write_context, write_self_contained
from ..registry.pushed import last_push
from ..render.devcontainer import devcontainer as devcontainer_files
from ..render.dockerfile import CONDA_TAR, DEBIAN_TAR, PYTHON_TAR
from ..render.kubernetes import MOST_NODES, fleet_job
from ..resolve.resolver import Upgrade
from ..sources.direct import check_folders
from ..workspace import Env, all_envs, is_env, read_env, read_lock, read_locks
from . import completing
from .common import chosen_lock, env_from_flags, request_flags
from .output import STACK, as_json, emit, table

_ALL = "*"
_LAST_PUSH = "*"


@click.command()
@click.argument("envs", nargs=-1, metavar="[ENV]...", shell_complete=completing.envs)
@click.option(
    "--check", is_flag=True, help="Write nothing; fail if a lock is missing or does not match its request."
)
@click.option(
    "--upgrade",
    "upgrade_",
    is_flag=False,
    flag_value=_ALL,
    multiple=True,
    metavar="[PACKAGE]",
    help="Move the pin of a package, of reprobuild's own files (reprobuild), or all pins; may be repeated. "
    "All other pins stay.",
)
@click.option(
    "--conda-lock",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the lock as a conda-lock.yml.",
)
@request_flags
@as_json
@click.pass_obj
def lock(
    host: Host,
    /,
    envs: tuple[str, ...],
    *,
    check: bool,
    upgrade_: tuple[str, ...],
    conda_lock: Path | None,
    json_: bool,
    **flags: Any,
) -> None:
    """Write the lock of a request.

    envs/pylock.NAME.toml pins everything that envs/NAME.toml asks for. ENV is the file or name of a request;
    without one and without flags, all requests in envs/ are locked.

    \b
    reprobuild lock --cuda 12.1 --package pandas --name frames
    reprobuild lock --upgrade numpy envs/frames.toml
    reprobuild lock --check
    """
    # `--upgrade envs/a.toml` and `--upgrade a` mean all of that request, not a package of such a name.
    envs = (*envs, *(value for value in upgrade_ if is_env(value)))
    moved = tuple(value for value in upgrade_ if value != _ALL and not is_env(value))
    upgrade = Upgrade(everything=len(moved) < len(upgrade_), packages=moved)
    if check and (upgrade_ or conda_lock):
        other = "--upgrade" if upgrade_ else "--conda-lock"
        raise click.UsageError(f"--check writes nothing, so it cannot be combined with {other}")
    chosen = _chosen(envs, flags, host)
    if conda_lock is not None and len(chosen) > 1:
        raise click.UsageError("--conda-lock FILE takes one request; name it")
    results, errors = [], []
    for env in chosen:
        try:
            results += _checked(env, host) if check else _locked(env, upgrade, host)
            if conda_lock is not None:
                atomic_write(conda_lock, write_conda_lock(read_lock(env.lock_file)).encode())
        except ReprobuildError as error:  # the others of envs/ still get their turn
            errors.append(error)
    if json_:
        emit(results)
    else:
        for result in results:
            rows = [] if host.console.quiet else _rows(result)
            table(f"{result['file']}{_of(result)}: {result['state']}", rows)
    for each in errors[:-1]:
        host.console.warn("\n  hint: ".join(filter(None, (each.message, each.hint))))
    if errors:
        raise errors[-1]


@click.command()
@click.argument("source", required=False, metavar="[LOCK|ENV]", shell_complete=completing.locks)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder to write to.",
)
@click.option(
    "--no-artifacts", is_flag=True, help="Write the text files only, not the gigabytes beside them."
)
@click.option(
    "--self-contained",
    is_flag=True,
    help="Write one Dockerfile that needs no context; requires BuildKit 0.12.",
)
@click.option(
    "--kubernetes",
    metavar="IMAGE@DIGEST",
    help="Write, in place of it, a Job that runs the self-test of a pushed image on each node.",
)
@click.option(
    "--devcontainer",
    is_flag=False,
    flag_value=_LAST_PUSH,
    metavar="[IMAGE@DIGEST]",
    help="Write, in place of it, DIR/.devcontainer/devcontainer.json, for editors that work in an image. "
    "[default: as it was last pushed from here]",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --devcontainer: a file of the CA certificates to trust inside the image.",
)
@click.option("--force", is_flag=True, help="With --devcontainer: replace a file that is there and differs.")
@click.option(
    "--nodes",
    type=click.IntRange(1, MOST_NODES),
    default=2,
    show_default=True,
    help="With --kubernetes: how many nodes.",
)
@request_flags
@as_json
@click.pass_obj
def render(
    host: Host,
    /,
    source: str | None,
    output: Path,
    *,
    no_artifacts: bool,
    self_contained: bool,
    kubernetes: str | None,
    devcontainer: str | None,
    ca: Path | None,
    force: bool,
    nodes: int,
    json_: bool,
    **flags: Any,
) -> None:
    """Write the Dockerfile of a lock, and everything that it copies.

    `docker build DIR` then needs no network. With --self-contained nothing is copied: the builder fetches
    each locked file from its address, and verifies its hash.

    \b
    reprobuild render --cuda 12.1 -o context && docker build -t torch context
    reprobuild render --cuda 12.1 -o . --self-contained && docker build -t torch - < Dockerfile
    reprobuild render --cuda 12.1 -o fleet --kubernetes registry.example/team/torch@sha256:DIGEST --nodes 8
    reprobuild render --cuda 12.1 -o . --devcontainer registry.example/team/torch@sha256:DIGEST
    """
    if devcontainer is not None:
        if self_contained or no_artifacts or kubernetes is not None:
            raise click.UsageError("--devcontainer writes no Dockerfile; leave the other options out")
        lock = chosen_lock(source, flags, host)
        certificates = None if ca is None else _read(ca)
        beside = devcontainer_files(lock, _pushed(lock, devcontainer, host), certificates)
        _refuse_to_replace(beside, output, force=force)
        _write(beside, output, lock.digest, json_=json_)
        return
    if ca is not None or force:
        raise click.UsageError("--ca and --force are for --devcontainer")
    if kubernetes is not None:
        if self_contained or no_artifacts:
            raise click.UsageError("--kubernetes writes no Dockerfile; leave the other options out")
        lock = chosen_lock(source, flags, host)
        _write(fleet_job(lock, kubernetes, nodes), output, lock.digest, json_=json_)
        return
    if click.get_current_context().get_parameter_source("nodes") == ParameterSource.COMMANDLINE:
        raise click.UsageError("--nodes is for --kubernetes")
    if self_contained and no_artifacts:
        raise click.UsageError("--self-contained writes no artifacts; leave --no-artifacts out")
    found = lock_to_build(chosen_lock(source, flags, host), host)
    if self_contained:
        path = write_self_contained(found, output, host=host)
        if json_:
            emit({"directory": str(output), "lock": found.digest, "files": [path.name]})
        else:
            click.echo(f"{path}, which needs no context, of lock {found.digest[:19]}")
        return
    rendered = write_context(found, output, artifacts=not no_artifacts, host=host)
    files = [
        *rendered.files,
        *(
            []
            if no_artifacts
            else [a.path for a in rendered.artifacts]
            + [*([DEBIAN_TAR] if found.debian else []), *([CONDA_TAR] if found.conda else [])]
            + ([PYTHON_TAR] if found.standalone is not None else [])
        ),
    ]
    if json_:
        emit({"directory": str(output), "lock": found.digest, "files": sorted(files)})
    else:
        click.echo(
            f"{output}/Dockerfile and {len(files) - 1} files that it copies, of lock {found.digest[:19]}"
        )


def _pushed(lock: Lock, image: str, host: Host) -> str:
    """Return the image that ``--devcontainer`` names: the one last pushed, where it names none."""
    found = last_push(host.home, lock.digest) if image == _LAST_PUSH else image
    if found is None:
        raise ImageError(
            f"the image of lock {lock.digest[:19]} was not pushed from here",
            hint="push it first, or pass --devcontainer REGISTRY/NAME@DIGEST",
        )
    return found


def _read(certificates: Path) -> bytes:
    with storage_errors(certificates):
        content = certificates.read_bytes()
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise RequestError(f"--ca {certificates} is not a file of CA certificates: expected PEM")
    return content


def _refuse_to_replace(files: Mapping[str, bytes], output: Path, *, force: bool) -> None:
    """Raise `StorageError` where a file is there already and differs; a user may have edited it."""
    for name, content in files.items():
        path = output / name
        with storage_errors(path):
            if not force and path.exists() and path.read_bytes() != content:
                raise StorageError(
                    f"{path} exists and differs from what would be written",
                    hint="--force replaces it; to keep it, edit its line with the image",
                )


def _write(files: Mapping[str, bytes], output: Path, digest: str, *, json_: bool) -> None:
    make_folders(output)
    for name, content in files.items():
        make_folders((output / name).parent)
        atomic_write(output / name, content)
    if json_:
        emit({"directory": str(output), "lock": digest, "files": sorted(files)})
    else:
        click.echo(f"{' and '.join(str(output / name) for name in files)}, of lock {digest[:19]}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    reprobuild completion bash > ~/.local/share/bash-completion/completions/reprobuild
    """
    root = click.get_current_context().find_root()
    click.echo(completing.script(root.command, shell))


COMMANDS: tuple[click.Command, ...] = (lock, render, completion)


def _chosen(names: tuple[str, ...], flags: dict[str, Any], host: Host) -> list[Env]:
    env = env_from_flags(flags, host)
    if env is not None and names:
        raise click.UsageError("pass requests or flags, not both")
    if env is not None:
        return [env]
    found = [read_env(name) for name in names] if names else all_envs()
    if not found:
        raise click.UsageError("no request in envs/; `reprobuild lock --cuda 12.1` writes one")
    return found


def _locked(env: Env, upgrade: Upgrade, host: Host) -> list[dict[str, Any]]:
    locks, before = lock_env(env, upgrade, host)
    earlier = {lock.platform: lock for lock in before}
    return [_facts(env, lock, earlier.get(lock.platform)) for lock in locks]


def _checked(env: Env, host: Host) -> list[dict[str, Any]]:
    if not env.lock_file.exists():
        how = f"`reprobuild lock {env.file}`" if env.file.exists() else "the same command without --check"
        raise LockError(f"{env.lock_file}: no such file", hint=f"{how} writes it")
    found = read_locks(env.lock_file)
    for lock in found:
        lock.check_for(env.request, str(env.lock_file))
    missing = set(env.request.platforms) - {lock.platform for lock in found}
    if missing:
        raise LockError(
            f"{env.lock_file}: lacks {', '.join(sorted(missing))}",
            hint="run `reprobuild lock` to bring it up to date",
        )
    check_folders(found[0], str(env.lock_file))
    warn_of_other_files(found[0], host)
    return [_facts(env, lock, lock) for lock in found]


def _of(facts: dict[str, Any]) -> str:
    return f", {facts['platform']}" if facts["platform"] else ""


def _facts(env: Env, now: Lock, before: Lock | None) -> dict[str, Any]:
    old = _versions(before) if before else {}
    new = _versions(now)
    moved = {
        name: [old.get(name), new.get(name)]
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }
    state = "new" if before is None else ("unchanged" if now == before else "changed")
    return {
        "file": str(env.lock_file),
        # Where it is said at all: most locks are for the machine that made them.
        "platform": now.platform if now.request.platforms else None,
        "digest": now.digest,
        "state": state,
        "stack": dict(now.stack),
        "python_packages": len(now.python),
        "debian_packages": len(now.debian),
        "conda_packages": len(now.conda),
        **({"base": f"{now.base.name}@{now.base.manifests[now.platform]}"} if now.base is not None else {}),
        **({"own_files": now.own_files.to_dict()} if now.own_files is not None else {}),
        "size": now.size,
        "moved": moved if before else {},
    }


def _versions(found: Lock) -> dict[str, str]:
    versions = {p.name: p.version for p in found.python}
    versions |= {"reprobuild (own files)": str(found.own_files)} if found.own_files is not None else {}
    versions |= {f"{p.name} (conda)": f"{p.version} {p.build}" for p in found.conda}
    return versions | {f"{p.name} (apt)": p.version for p in found.debian}


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    stack = facts["stack"]
    rows = [(title, stack[name]) for name, title in (STACK | {"python": "Python"}).items() if name in stack]
    conda = f", {facts['conda_packages']} conda" if facts["conda_packages"] else ""
    count = f"{facts['python_packages']} Python{conda} and {facts['debian_packages']} Debian packages"
    rows += [("base", facts["base"].replace("@", " ")[: -64 + 12])] if "base" in facts else []
    rows += [("locked", f"{count}, {size_text(facts['size'])}"), ("digest", facts["digest"])]
    return rows + [("moved", f"{n} {a or 'none'} → {b or 'none'}") for n, (a, b) in facts["moved"].items()]
