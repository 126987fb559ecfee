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
from .shells import homes

OPENSSL = ("etc/ssl/openssl.cnf", "usr/lib/ssl/openssl.cnf")
NSSWITCH = "etc/nsswitch.conf"
_ARCHIVE = "usr/lib/locale/locale-archive"
_ALIASES = ("usr/share/locale/locale.alias", "etc/locale.alias")
READ = (*OPENSSL, NSSWITCH, _ARCHIVE, *_ALIASES)
"""The files whose content `system_files` needs."""

_NCCL = "etc/nccl.conf"
_OWN_NCCL = ".nccl.conf"
"""In the folder that the system's list of users names, wherever it is: NCCL asks getpwuid(3)."""

_LOCALE = re.compile(rb"\bC\.utf-?8\b", re.IGNORECASE)
"""The image's own locale. glibc looks for it in the archive and among the aliases first, and only then in
Debian's folder of it (glibc, locale/findlocale.c)."""

_LOCALE_FOLDER = re.compile(r"usr/lib/locale/C\.utf-?8(/|\Z)", re.IGNORECASE)
"""A folder of that locale. glibc tries the name as it is written first, and Debian's is C.utf8."""

_INCLUDE = re.compile(r"\.include\b")
_MODULES = frozenset(("providers", "ssl_conf", "oid_section", "alg_section", "random", "stbl_section"))
"""What OpenSSL's first section may configure without a library; `engines` and any other name load one."""
_BUILT_IN = frozenset(("default", "base", "legacy", "null"))
"""OpenSSL's own providers. Any other is loaded by its name from a folder of modules."""
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
    for path in (_NCCL, *(f"{home}/{_OWN_NCCL}" for home in homes(context))):
        if path in files:
            yield Difference(f"/{path}", "setting", "", f"/{path}")
    yield from _locales(context)
    for path in OPENSSL:
        if path in files and files[path].kind == "file" and path not in context.named:
            text = kept[path].decode("utf-8", "replace") if path in kept else ".include"
            if found := _loaded(text):
                yield Difference(f"/{path}", "runs at start", "", found)
    if NSSWITCH in files:
        text = kept[NSSWITCH].decode("utf-8", "replace") if NSSWITCH in kept else "passwd: unread"
        for line in text.splitlines():
            names = re.sub(r"#.*|\[[^]]*\]", " ", line).partition(":")[2].split()
            if others := [name for name in names if name not in _SERVICES]:
                yield Difference(f"/{NSSWITCH}", "runs at start", "", " ".join(others))


def _locales(context: Context) -> Iterator[Difference]:
    """Yield other definitions of the image's own locale."""
    files, kept = context.tree.files, context.tree.kept
    for path in (_ARCHIVE, *_ALIASES):
        if path in files and path not in context.named and _LOCALE.search(kept.get(path, b"C.UTF-8")):
            yield Difference(f"/{path}", "setting", "", "C.UTF-8")
    for path, record in files.items():
        if record.kind != "dir" and path not in context.named and _LOCALE_FOLDER.match(path):
            yield Difference(f"/{path}", "setting", "", "C.UTF-8")


def _loaded(text: str) -> str:
    """Return what in a file of OpenSSL's makes it load a library, or nothing.

    As libcrypto reads it (crypto/conf): the section that `openssl_conf` names configures modules, of which
    `providers` names a section for each provider. A name may have its section before it (``section::name``),
    of a module what follows a dot does not count, and a backslash joins two lines.
    """
    joined = re.sub(r"(?<!\\)\\\r?\n", "", text)
    sections, section = dict[str, list[tuple[str, str]]](), "default"
    for line in (each.partition("#")[0].strip() for each in joined.split("\n")):
        name, equals, value = (each.strip() for each in line.partition("="))
        if _INCLUDE.match(line):
            return ".include"
        if line.startswith("["):
            section = line[1:].partition("]")[0].strip()
        elif equals:
            before, _, last = name.rpartition("::")
            sections.setdefault(before.strip() or section, []).append((last.strip(), value))
    firsts = [value for each in sections.values() for name, value in each if name == "openssl_conf"]
    modules = [
        (name.rpartition(".")[0] or name, value)
        for first in firsts
        for name, value in sections.get(first, [])
    ]
    providers = [each for name, value in modules if name == "providers" for each in sections.get(value, [])]
    settings = [each for _, value in providers for each in sections.get(value, [])]
    loads = (
        *((name, value) for name, value in modules if name not in _MODULES),
        *((name, value) for name, value in providers if name not in _BUILT_IN),
        *((name, value) for name, value in settings if name != "activate"),
        *(("openssl_conf", value) for value in firsts if "$" in value),
        *((name, value) for name, value in (*modules, *providers) if "$" in value),
    )
    return next((f"{name} = {value}" for name, value in loads), "")
