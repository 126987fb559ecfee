"""Addresses of this machine, and of its own link, where a cloud's metadata are: however they are written."""

from __future__ import annotations

import re
import socket
import unicodedata
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")


def is_loopback(host: str | None) -> bool:
    """Whether a host, without its port, is this machine in one of the usual spellings."""
    return bool(_LOOPBACK.fullmatch((host or "").strip("[]")))


def is_here(host: str | None) -> bool:
    """Return whether an address is this machine's, or link-local as that of a cloud's metadata (RFC 3927).

    A name that leads there is not recognized, but for ``localhost`` and what is below it (RFC 6761).
    """
    text, address = _read(host)
    if address is None:
        return text == "localhost" or text.endswith(".localhost")
    return address.is_loopback or is_on_link(host)


def is_on_link(host: str | None) -> bool:
    """Return whether an address is link-local, or that of no machine. A name is not recognized."""
    _, address = _read(host)
    return address is not None and (address.is_link_local or address.is_unspecified)


def _read(host: str | None) -> tuple[str, IPv4Address | IPv6Address | None]:
    # HTTP clients turn wide digits into plain ones (IDNA), and the C library takes 127.1 and 2130706433.
    text = unicodedata.normalize("NFKC", (host or "").strip("[]").partition("%")[0])
    text = text.replace("\u3002", ".").rstrip(".").lower()
    try:
        with suppress(OSError):  # a name, or an address of IPv6
            text = socket.inet_ntoa(socket.inet_aton(text))
        address = ip_address(text)
    except ValueError:
        return text, None
    return text, getattr(address, "ipv4_mapped", None) or address
