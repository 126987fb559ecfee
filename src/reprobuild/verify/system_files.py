"""System files that configure the C library, OpenSSL and NCCL. Pure.

The manifest does not name what is below ``/etc``, which a container's start and an ordinary `apt-get install`
change. So these are judged by what they say: nsswitch.conf(5), OpenSSL's config(5), NCCL's "Environment
Variables".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .compare import Difference
from .context import Context

OPENSSL = ("etc/ssl/openssl.cnf", "usr/lib/ssl/openssl.cnf")
NSSWITCH = "etc/nsswitch.conf"
READ = (*OPENSSL, NSSWITCH)
"""The files whose content `system_files` needs."""

_NCCL = ("etc/nccl.conf", "root/.nccl.conf")
_LOADS = re.compile(r"^\s*(?:\.include\b|(?:module|dynamic_path|SO_PATH)\s*=)", re.MULTILINE)
_SERVICES = frozenset(
    (
        *(
            "files",
            "db",
            "dns",
            "compat",
            "nis",
            "systemd",
            "resolve",
            "myhostname",
            "mymachines",
            "extrausers",
        ),
        *("mdns", "mdns4", "mdns6", "mdns_minimal", "mdns4_minimal", "mdns6_minimal", "sss", "ldap", "wins"),
    )
)
"""The name services that Debian packages."""


def system_files(context: Context) -> Iterator[Difference]:
    """Yield the files of the system that put code or settings into a user's program."""
    files, kept = context.tree.files, context.tree.kept
    etc = files.get("etc")
    if etc is not None and etc.kind == "link":  # then nothing is where these rules look
        yield Difference("/etc", "type", "dir", "link")
    for path in _NCCL:
        if path in files:
            yield Difference(f"/{path}", "setting", "", f"/{path}")
    for path in OPENSSL:
        if path in files and files[path].kind == "file" and path not in context.named:
            text = kept[path].decode("utf-8", "replace") if path in kept else ".include"
            if found := _LOADS.search(text):
                yield Difference(f"/{path}", "runs at start", "", found[0].strip())
    if NSSWITCH in files:
        text = kept[NSSWITCH].decode("utf-8", "replace") if NSSWITCH in kept else "passwd: unread"
        for line in text.splitlines():
            names = re.sub(r"#.*|\[[^]]*\]", " ", line).partition(":")[2].split()
            if others := [name for name in names if name not in _SERVICES]:
                yield Difference(f"/{NSSWITCH}", "runs at start", "", " ".join(others))
