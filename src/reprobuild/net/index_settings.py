"""The package indexes, certificates and proxy that the user has set up for uv or pip.

Reads files and variables only, and logs nothing, since what keeps secrets out of the log asks here.

Sources: https://docs.astral.sh/uv/concepts/indexes/, https://docs.astral.sh/uv/reference/environment/ and
https://pip.pypa.io/en/stable/topics/configuration/ (places, their order, PIP_ variables).
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from uv import find_uv_bin

from ..errors import HostError
from ..host.home import kind_of
from ..request.toml_reader import load_toml

PYTHON_MIRROR = "UV_PYTHON_INSTALL_MIRROR"
"""uv's variable that names a mirror of python-build-standalone's releases."""

_RELEASES = "/releases/download/"

PLAIN = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1", "UV_NO_PROGRESS": "1", "COLUMNS": "200"}
"""Variables by which uv writes the same text everywhere."""

UV_RULES = (
    *("CONSTRAINT", "BUILD_CONSTRAINT", "OVERRIDE", "EXCLUDE", "EXCLUDE_NEWER", "PRERELEASE", "RESOLUTION"),
    *("FORK_STRATEGY", "NO_BINARY", "NO_BINARY_PACKAGE", "NO_BUILD", "NO_BUILD_PACKAGE", "ONLY_BINARY"),
    "TORCH_BACKEND",
)
"""uv's variables that choose versions, without ``UV_``."""
_PIP_RULES = ("constraint", "build-constraint", "pre", "no-binary", "prefer-binary", "uploaded-prior-to")
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Indexes:
    """Addresses from the user, which may contain credentials: they never go into a message or a lock."""

    default: str
    extra: tuple[str, ...] = ()
    """Queried in this order before the default one, as uv does."""
    from_uv: bool = False
    """Whether uv itself is set up with the default index, so that it needs no telling."""

    @property
    def all(self) -> tuple[str, ...]:
        """In the order in which uv asks them."""
        return (*self.extra, self.default)


def indexes() -> Indexes:
    """Return uv's indexes, else pip's, else the well-known one (a constant of pypi-simple's).

    Where uv is told an extra index only, the default one is still pip's. An extra index of pip's that is a
    folder of this machine is left out: a lock made from it would be of no use elsewhere.
    """
    found = _configured()
    for url in found.all:
        _split(url)
    return found if found.default else replace(found, default=well_known())


def named_indexes() -> tuple[str, ...]:
    """Return the indexes that somebody has set up, without the well-known one."""
    return tuple(filter(None, _configured().all))


def _configured() -> Indexes:
    """Return the indexes; the default is empty where nobody names one."""
    uv, pip = _uv(), _Pip()
    if uv.default:
        return Indexes(default=uv.default, extra=uv.extra, from_uv=True)
    extra = list(uv.extra)
    for url in pip.get("extra-index-url").split():
        if _split(url).scheme in ("http", "https") and url not in extra:
            extra.append(url)
    return Indexes(default=pip.get("index-url"), extra=tuple(extra))


def _split(url: str) -> SplitResult:
    """Return the parts of an address from somebody's settings. Raises `HostError`."""
    try:
        return urlsplit(url)
    except ValueError as error:  # brackets that hold no IPv6 address
        raise HostError(
            f"an address of an index in the settings of uv or pip cannot be read: {error}",
            hint="correct it, or remove it",
        ) from None


def well_known() -> str:
    """Return the default index, for a user who has not configured one."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 -- slow to load, and most machines name an index

    return PYPI_SIMPLE_ENDPOINT


def find_links() -> tuple[str, ...]:
    """Return the pages and folders of wheels beside the indexes, as addresses that may hold credentials.

    They are uv's; and pip's, where pip's default index is the one that counts (see `indexes`).
    """
    uv = _uv()
    more = () if uv.default else tuple(_Pip().get("find-links").split())
    return tuple(dict.fromkeys([*uv.links, *(_link(link, Path.cwd()) for link in more)]))


def check_find_links() -> None:
    """Raise `HostError` that names the setting of a folder of wheels which does not exist."""
    for link in find_links():
        parts = _split(link)
        if parts.scheme == "file":
            named = (
                name
                for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS")
                for word in re.split(r"[,\s]+", os.environ.get(name, ""))
                if word and _link(word, Path.cwd()) == link
            )
            _existing(next(named, "find-links in the files of uv or pip"), unquote(parts.path))


def uv_program() -> str:
    """Return the path of uv. Raises `HostError` if it is not installed."""
    try:
        return find_uv_bin()
    except FileNotFoundError:
        raise HostError("the program uv is not installed", hint="pip install uv") from None


def mirrored_python(url: str) -> str:
    """Return where a standalone build of Python is fetched: from uv's mirror of them, if one is set up."""
    mirror = os.environ.get(PYTHON_MIRROR, "")
    for _, table in _uv_files():
        mirror = mirror or str(table.get("python-install-mirror", ""))
    if not mirror.startswith(("https://", "http://")) or _RELEASES not in url:
        return url
    return f"{mirror.rstrip('/')}/{url.partition(_RELEASES)[2]}"


def check_no_backend() -> None:
    """Raise `HostError` if a file of uv's sets a torch backend, which cannot be overridden."""
    for path, table in _uv_files():
        if "torch-backend" in table.get("pip", {}):
            raise HostError(
                f"{path}: pip.torch-backend would decide where torch comes from, and the request does",
                hint='take it out of the file, or write index = "pytorch" into the request (--index pytorch)',
            )


def every_index() -> bool:
    """Whether uv is set up to look for a package on all indexes, and not only on the first that knows it."""
    found = os.environ.get("UV_INDEX_STRATEGY", "")
    for _, table in _uv_files():
        found = found or table.get("pip", {}).get("index-strategy", "") or table.get("index-strategy", "")
    return found not in ("", "first-index")


def unread_rules() -> tuple[str, ...]:
    """Return the names of settings of uv's and pip's that choose versions, which no lock follows.

    pip's count where its index does.
    """
    found = [f"UV_{name}" for name in UV_RULES if os.environ.get(f"UV_{name}")]
    pip = None if _uv().default else _Pip()
    return (*found, *(f"pip's {key}" for key in _PIP_RULES if pip is not None and pip.get(key)))


def ca_bundle() -> Path | None:
    """Return the file of CA certificates that a variable or pip's ``cert`` names; None: the system's store.

    Raises `HostError` when it does not exist.
    """
    named = next(((name, os.environ[name]) for name in _BUNDLES if os.environ.get(name)), None)
    if named is None:
        named = ("pip's setting cert", _Pip().get("cert"))
    return _existing(*named)


def client_certificate() -> Path | None:
    """Return the PEM file with the certificate and key by which this machine names itself to servers.

    It is uv's ``SSL_CLIENT_CERT``, else pip's ``client-cert``. Raises `HostError` when it does not exist.
    """
    named = ("SSL_CLIENT_CERT", os.environ.get("SSL_CLIENT_CERT", ""))
    return _existing(*(named if named[1] else ("pip's setting client-cert", _Pip().get("client-cert"))))


def _existing(where: str, path: str) -> Path | None:
    if path and kind_of(path) is None:
        raise HostError(f"{where} names {path}, which does not exist", hint="correct it, or unset it")
    return Path(path) if path else None


def proxy() -> str:
    """Return pip's ``proxy`` setting, which applies if no proxy variable is set; empty: none."""
    known = ("http_proxy", "https_proxy", "all_proxy")
    if any(os.environ.get(name) or os.environ.get(name.upper()) for name in known):
        return ""
    return _Pip().get("proxy")


def proxy_environment() -> dict[str, str]:
    """Return the proxies as variables for apt and git, which do not read all names in capitals.

    apt reads none of those (apt-transport-http(1)), and git none for http (curl, "Environment").
    """
    found: dict[str, str] = {}
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        for known in (name, name.upper(), *(("all_proxy", "ALL_PROXY") if name != "no_proxy" else ())):
            if value := os.environ.get(known):
                found.setdefault(name, value if name == "no_proxy" else _proxy_address(value))
    return {**({"http_proxy": proxy(), "https_proxy": proxy()} if proxy() else {}), **found}


def _proxy_address(value: str) -> str:
    """Return the address of a proxy in the form that apt takes: with a scheme, and of SOCKS with socks5h."""
    value = value if "://" in value else f"http://{value}"
    return value.replace("socks5://", "socks5h://", 1)


def uv_environment() -> dict[str, str]:
    """Return the variables that make uv use the indexes, certificates and proxy that are found here.

    A variable and not an argument, since arguments are logged and can be seen by every user of the machine.
    """
    found = indexes()
    env: dict[str, str] = {}
    if not found.from_uv:
        env["UV_DEFAULT_INDEX"] = found.default
        more = [url for url in found.extra if url not in _uv().extra]
        if more:
            env["UV_INDEX"] = " ".join([*os.environ.get("UV_INDEX", "").split(), *more])
    if find_links():
        # uv runs in a folder of its own, where a relative path means nothing.
        env["UV_FIND_LINKS"] = ",".join(link.replace(",", "%2C") for link in find_links())
    bundle = ca_bundle()
    if bundle is not None:
        env["SSL_CERT_FILE"] = str(bundle.absolute())
    elif not any(os.environ.get(name) for name in ("SSL_CERT_DIR", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS")):
        env["UV_SYSTEM_CERTS"] = "true"
    certificate = client_certificate()
    if certificate is not None:
        env["SSL_CLIENT_CERT"] = str(certificate.absolute())
    if proxy():
        env |= {"HTTP_PROXY": proxy(), "HTTPS_PROXY": proxy()}
    return env


@dataclass(frozen=True, slots=True)
class _Uv:
    default: str
    extra: tuple[str, ...]
    links: tuple[str, ...]


def _uv() -> _Uv:
    """Read uv's variables, then its system and user files (a project's file is not ours to follow)."""
    default, extra = "", []
    for entry in os.environ.get("UV_INDEX", "").split():
        name, equals, url = entry.partition("=")
        named = equals and re.fullmatch(r"[A-Za-z0-9._-]+", name)
        extra.append(_with_variables(url, name) if named else entry)
    extra += os.environ.get("UV_EXTRA_INDEX_URL", "").split()
    name, equals, url = os.environ.get("UV_DEFAULT_INDEX", "").partition("=")
    if equals and re.fullmatch(r"[A-Za-z0-9._-]+", name):
        default = _with_variables(url, name)
    else:
        default = os.environ.get("UV_DEFAULT_INDEX", "") or os.environ.get("UV_INDEX_URL", "")
    links = [_link(link, Path.cwd()) for link in os.environ.get("UV_FIND_LINKS", "").split(",") if link]
    for path, table in _uv_files():
        for index in table.get("index", []):
            url = _with_variables(str(index.get("url", "")), str(index.get("name", "")))
            if index.get("default"):
                default = default or url
            elif url and url not in extra and not index.get("explicit"):
                extra.append(url)
        pip = table.get("pip", {})
        default = default or pip.get("index-url", "") or table.get("index-url", "")
        more = [*pip.get("extra-index-url", []), *table.get("extra-index-url", [])]
        extra += [url for url in more if url not in extra]
        pages = [*pip.get("find-links", []), *table.get("find-links", [])]
        links += [_link(str(link), path.parent) for link in pages]
    return _Uv(default, tuple(extra), tuple(links))


def _link(text: str, folder: Path) -> str:
    """Write a page or folder of wheels as an address; a relative path is one below ``folder``."""
    if _split(text).scheme in ("http", "https", "file"):
        return text
    return folder.joinpath(Path(text).expanduser()).absolute().as_uri()


def _uv_files() -> Iterator[tuple[Path, Mapping[str, Any]]]:
    env = os.environ
    if env.get("UV_NO_CONFIG"):
        return
    if env.get("UV_CONFIG_FILE"):
        paths = [Path(env["UV_CONFIG_FILE"])]
    else:
        system = [
            *(Path(folder) / "uv/uv.toml" for folder in env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")),
            Path("/etc/uv/uv.toml"),
        ]
        # uv reads the first system file there is, and the user's file outranks it.
        paths = [_config_home() / "uv/uv.toml", *[path for path in system if path.is_file()][:1]]
    for path in paths:
        try:
            yield path, load_toml(path.read_text("utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise HostError(
                f"{path}: cannot be read as uv's settings: {error}", hint="correct the file"
            ) from None


def _with_variables(url: str, name: str) -> str:
    """Add uv's credentials of a named index: ``UV_INDEX_NAME_USERNAME`` and ``_PASSWORD``."""
    stem = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    user, word = os.environ.get(f"{stem}_USERNAME", ""), os.environ.get(f"{stem}_PASSWORD", "")
    parts = _split(url)
    if not name or not (user or word) or "@" in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{quote(user, '')}:{quote(word, '')}@{parts.netloc}"))


class _Pip:
    """pip's settings: the variable ``PIP_KEY`` before its files, ``[install]`` before ``[global]``."""

    def __init__(self) -> None:
        self._parser = configparser.RawConfigParser()
        try:
            self._parser.read(self._files(), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise HostError(
                f"pip's settings cannot be read: {error}", hint="see `pip config debug`"
            ) from None

    def get(self, key: str) -> str:
        value = os.environ.get("PIP_" + key.upper().replace("-", "_"), "")
        for section in ("install", "global"):
            if value or not self._parser.has_section(section):
                continue
            # pip takes extra_index_url and --extra-index-url for extra-index-url.
            found = {name.replace("_", "-").lstrip("-"): text for name, text in self._parser.items(section)}
            value = found.get(key, "")
        return value.strip()

    @staticmethod
    def _files() -> list[Path]:
        """In pip's order: a later file outranks an earlier one."""
        own = os.environ.get("PIP_CONFIG_FILE", "")
        if own == os.devnull:
            return []
        dirs = os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
        files = [Path(folder) / "pip/pip.conf" for folder in reversed(dirs)] + [Path("/etc/pip.conf")]
        if not (own and kind_of(own)):
            files += [Path.home() / ".pip/pip.conf", _config_home() / "pip/pip.conf"]
        files.append(Path(os.environ.get("VIRTUAL_ENV") or sys.prefix) / "pip.conf")
        return files + ([Path(own)] if own else [])


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
