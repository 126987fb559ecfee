"""The command ``lock``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..errors import LockError, ReprobuildError
from ..host.console import size_text
from ..host.home import atomic_write
from ..host.host import Host
from ..lock.conda_lock import write_conda_lock
from ..lock.model import Lock
from ..pipeline.steps import lock_env, warn_of_other_files, warn_of_other_variables
from ..pipeline.workspace import (
    Env,
    all_envs,
    is_env,
    locks_without_request,
    read_env,
    read_lock,
    read_locks,
)
from ..resolve.resolver import Upgrade
from ..sources.direct_source import check_folders
from . import complete
from .lock_report import lock_report
from .options import env_from_flags, request_flags
from .output import STACK, as_json, emit, file_option, table

_ALL = "*"


@click.command()
@click.argument("envs", nargs=-1, metavar="[ENV]...", shell_complete=complete.envs)
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
@file_option("--conda-lock", text="Also write the lock as a conda-lock.yml.")
@file_option(
    "--report",
    text="Also write as Markdown what changed, which releases are yanked, and known vulnerabilities.",
)
@click.option(
    "--osv",
    envvar="REPROBUILD_OSV",
    metavar="SOURCE",
    help="With --report: advisories in OSV's format: all.zip of PyPI, a folder of them, or an address. "
    "[default: REPROBUILD_OSV]",
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
    report: Path | None,
    osv: str | None,
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
    reprobuild lock --upgrade --report changes.md --osv all.zip
    """
    # `--upgrade envs/a.toml` and `--upgrade a` mean all of that request, not a package of such a name.
    envs = (*envs, *(value for value in upgrade_ if is_env(value)))
    moved = tuple(value for value in upgrade_ if value != _ALL and not is_env(value))
    upgrade = Upgrade(everything=len(moved) < len(upgrade_), packages=moved)
    for option, value in {"--upgrade": upgrade_, "--conda-lock": conda_lock, "--report": report}.items():
        if check and value:
            raise click.UsageError(f"--check writes nothing, so it cannot be combined with {option}")
    if report is None and _is_typed("osv"):
        raise click.UsageError("--osv needs --report FILE, to which the advisories are written")
    chosen = _chosen(envs, flags, host)
    if conda_lock is not None and len(chosen) > 1:
        raise click.UsageError("--conda-lock FILE takes one request; name it")
    of_all = not envs and all(value in (None, ()) for value in flags.values())
    results: list[dict[str, Any]] = []
    errors: list[ReprobuildError] = [*locks_without_request()] if check and of_all else []
    pages = None if report is None else list[str]()
    for env in chosen:
        try:
            results += _checked(env, host) if check else _locked(env, upgrade, host, pages, osv)
            if conda_lock is not None:
                atomic_write(conda_lock, write_conda_lock(read_lock(env.lock_file)).encode())
        except ReprobuildError as error:  # the others of envs/ still get their turn
            errors.append(error)
    if report and pages:
        atomic_write(report, "\n".join(pages).encode())
    if results or not errors:  # an error alone is the result of --json
        _print(results, host, json_=json_)
    for each in errors[:-1]:
        host.console.warn("\n  hint: ".join(filter(None, (each.message, each.hint))))
    if errors:
        raise errors[-1]


def _is_typed(option: str) -> bool:
    """Return whether an option is on the command line, and not set by a variable or default."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _print(results: list[dict[str, Any]], host: Host, *, json_: bool) -> None:
    if json_:
        emit(results)
    else:
        for result in results:
            rows = [] if host.console.quiet else _rows(result)
            table(f"{result['file']}{_of(result)}: {result['state']}", rows)


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


def _locked(
    env: Env, upgrade: Upgrade, host: Host, pages: list[str] | None, osv: str | None
) -> list[dict[str, Any]]:
    """Lock a request; return the result, and add its report to ``pages`` if given."""
    locks, before = lock_env(env, upgrade, host)
    if pages is not None:
        pages.append(lock_report(before, locks, osv, host))
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
            hint="run `reprobuild lock` to update it",
        )
    check_folders(found[0], str(env.lock_file))
    warn_of_other_files(found[0], host)
    warn_of_other_variables(found[0], host)
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
    rows += [("locked", f"{count}, {size_text(facts['size'])}"), ("lock", facts["digest"])]
    return rows + [("moved", f"{n} {a or 'none'} → {b or 'none'}") for n, (a, b) in facts["moved"].items()]
