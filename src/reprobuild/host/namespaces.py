"""Namespaces for programs that must leave no mounts or processes behind.

Made by unshare, which is also killed with this process, so that holds after a SIGKILL of reprobuild as well.
"""

from __future__ import annotations

import os

from ..errors import HostError
from . import process

PROGRAMS = ("unshare", "setpriv", "prlimit", "pivot_root", "mount", "umount", "tar")
"""What keeps a stranger's program apart; every Debian has them, a small container image may not."""

OF_USERS = ("newuidmap", "newgidmap")
"""Programs that an ordinary user needs in addition."""


def check_programs() -> None:
    """Raise `HostError` that names the package of the first program that is missing."""
    for program in (*PROGRAMS, *(OF_USERS if os.geteuid() != 0 else ())):
        process.require(program, "to keep programs of packages and images apart from the machine's own files")


def prefix(*, all_ids: bool = False) -> list[str]:
    """Return the prefix of a command that gives it its own mount and PID namespaces.

    An ordinary user is root in there, and the only user; with ``all_ids`` there are also the ids that
    /etc/subuid and /etc/subgid give that user, which takes newuidmap. Raises `HostError` without unshare.
    """
    unshare = process.require("unshare", "to run programs apart from the machine's own")
    own = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [unshare, *_user(all_ids=all_ids), *own]


def without_network() -> list[str]:
    """Return the prefix of a command that reaches no network, not even one on loopback.

    An ordinary user is root in there, with the ids of `prefix`. Raises `HostError` without unshare.
    """
    unshare = process.require("unshare", "to run a program without a network")
    return [unshare, *_user(all_ids=True), "--net", "--fork", "--kill-child"]


def check(*, all_ids: bool = False) -> None:
    """Raise `HostError` when this user cannot make the namespaces of `prefix`."""
    all_ids = all_ids and os.geteuid() != 0
    if all_ids:
        process.require("newuidmap", "by an ordinary user, for more users than one in a root")
        check()
    try:
        process.run([*prefix(all_ids=all_ids), "true"])
    except process.ProcessFailed as failed:
        if all_ids:
            raise HostError(
                f"your user has no range of subordinate ids: {failed.tail.removesuffix(': Success')}",
                hint="give it one in /etc/subuid and /etc/subgid (usermod --add-subuids 100000-165535"
                " --add-subgids 100000-165535 USER), or run as root",
            ) from None
        raise HostError(
            f"this machine does not let you make a mount namespace: {failed.tail}",
            hint="as an ordinary user: allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 or"
            " user.max_user_namespaces); in a container: give it CAP_SYS_ADMIN and an unmasked /proc (Docker:"
            " --security-opt systempaths=unconfined; Kubernetes: procMount: Unmasked); or run as root",
        ) from None


def _user(*, all_ids: bool) -> list[str]:
    if os.geteuid() == 0:
        return []
    return ["--user", "--map-root-user", *(["--map-auto"] if all_ids else [])]
