"""Match specs → packages, by py-rattler's solver. What this machine has plays no part.

It takes a fifth of a second to import, so no module should do so before a solve is wanted.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import rattler
import yaml
from rattler.channel import ChannelConfig
from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError

from ..errors import HostError, ResolveError
from ..lock.model import CondaPackage
from ..net.session import scrub, without_credentials

_ARCHSPEC = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
_KERNEL = "5.10"
"""``__linux``: of Debian 11, older than any kernel that the images meet."""


def solve(
    specs: Sequence[str],
    *,
    channels: Sequence[str],
    platform: str,
    virtual: Mapping[str, str],
    constraints: Sequence[str],
    as_of: date | None,
    keep: Sequence[CondaPackage] = (),
) -> tuple[CondaPackage, ...]:
    """Return the packages that fit, closure included, the same for the same channels.

    ``platform`` is conda's name. ``virtual`` has the versions of what the image's host and base offer, such
    as ``__glibc``. ``constraints`` narrow packages down without asking for them. Each of ``keep`` is taken
    where it fits, before newer ones. With ``as_of`` what is younger, or has no date, does not count. Raises
    `ResolveError`: the solver's reason, a channel that cannot be read, a package without sha256.
    """
    given = {"__unix": "0", "__linux": _KERNEL, "__archspec": "1", **virtual}

    async def solved() -> list[rattler.RepoDataRecord]:
        gateway = rattler.Gateway(client=rattler.Client.default_client())
        sources = [rattler.Channel(name, _channel_config()) for name in channels]
        platforms = [rattler.Subdir(platform), rattler.Subdir("noarch")]
        return await rattler.solve(
            sources,
            [rattler.MatchSpec(_with_address(spec)) for spec in specs],
            gateway=gateway,
            platforms=platforms,
            locked_packages=await _records(gateway, sources, platforms, keep),
            virtual_packages=[_virtual(name, version, platform) for name, version in given.items()],
            constraints=[rattler.MatchSpec(spec) for spec in constraints],
            exclude_newer=None if as_of is None else _end_of(as_of),
        )

    try:
        records = asyncio.run(solved())
    except SolverError as error:
        raise _unsolvable(str(error), as_of) from None
    except GatewayError as error:
        raise ResolveError(
            f"a conda channel cannot be read: {_legible(str(error))}",
            hint="check the channel's name or address, the network and the proxy; CONDA_CHANNEL_ALIAS says "
            "where channels without an address are",
        ) from None
    except (InvalidMatchSpecError, ValueError) as error:
        raise ResolveError(f"conda: {_legible(str(error))}", hint="correct it in the request") from None
    return tuple(_package(record) for record in sorted(records, key=lambda r: r.name.normalized))


async def _records(
    gateway: rattler.Gateway,
    sources: Sequence[rattler.Channel],
    platforms: Sequence[rattler.Subdir],
    wanted: Sequence[CondaPackage],
) -> list[rattler.RepoDataRecord]:
    """Return what the channels have of some packages, of the very same bytes."""
    if not wanted:
        return []
    names = [rattler.MatchSpec(package.name) for package in wanted]
    found = await gateway.query(sources, platforms, names, recursive=False)
    bytes_ = {(package.filename, package.sha256) for package in wanted}
    return [
        record
        for channel in found
        for record in channel
        if record.sha256 is not None and (record.file_name, record.sha256.hex()) in bytes_
    ]


def lets_in(spec: str, version: str) -> bool:
    """Whether a match spec takes a version; of the build, which a wheel does not have, it says nothing."""
    try:
        wanted = rattler.MatchSpec(spec).version
        return wanted is None or rattler.VersionSpec(wanted).matches(rattler.Version(version))
    except Exception:  # noqa: BLE001 -- py-rattler has a class a cause; what it cannot read says nothing
        return True


def _virtual(name: str, version: str, platform: str) -> rattler.GenericVirtualPackage:
    build = _ARCHSPEC[platform] if name == "__archspec" else "0"
    return rattler.GenericVirtualPackage(
        rattler.PackageName(name), rattler.Version(version), rattler.BuildString(build)
    )


def _with_address(spec: str) -> str:
    """Write a channel that a spec names by its address: the solver knows no alias but its own."""
    channel, colons, rest = spec.rpartition("::")
    return f"{rattler.Channel(channel, _channel_config()).base_url}::{rest}" if colons else spec


def _package(record: rattler.RepoDataRecord) -> CondaPackage:
    name = record.name.normalized
    if record.sha256 is None or record.size is None:
        missing = "sha256" if record.sha256 is None else "size"
        raise ResolveError(
            f"the conda channel gives no {missing} of {record.file_name}",
            hint="use a channel that does: without it a package cannot be locked",
        )
    time = record.timestamp
    return CondaPackage(
        name=name,
        version=str(record.version),
        build=str(record.build),
        subdir=record.subdir,
        url=without_credentials(record.url),
        sha256=record.sha256.hex(),
        md5=None if record.md5 is None else record.md5.hex(),
        size=record.size,
        depends=tuple(record.depends),
        uploaded=None if time is None else time.astimezone(UTC).replace(microsecond=0),
        constrains=tuple(record.constrains),
    )


def _end_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


def _channel_config() -> ChannelConfig:
    """Where a channel is that has a name only: as conda is set up, else as rattler has it."""
    alias = os.environ.get("CONDA_CHANNEL_ALIAS") or _condarc().get("channel_alias")
    if not alias:
        return ChannelConfig()
    if urlsplit(str(alias)).scheme not in ("http", "https", "file"):
        raise HostError(
            f"conda's channel_alias is {scrub(str(alias))!r}, which is not a URL",
            hint="correct CONDA_CHANNEL_ALIAS, or channel_alias in ~/.condarc",
        )
    return ChannelConfig(channel_alias=str(alias))


def _condarc() -> Mapping[str, object]:
    file = Path(os.environ.get("CONDARC") or Path.home() / ".condarc")
    try:
        data = yaml.safe_load(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise HostError(f"{file}: cannot be read as conda's settings: {error}", hint="correct it") from None
    return data if isinstance(data, dict) else {}


def _unsolvable(text: str, as_of: date | None) -> ResolveError:
    reason = re.sub(r"^Cannot solve the request because of: ", "", text.strip())
    hint = "change the packages or versions in the request"
    if as_of is not None:
        hint += f"; only what was built by {as_of} counts, as its as-of says, and nothing without a date"
    return ResolveError(f"the conda packages cannot be resolved: {scrub(reason)}", hint=hint)


def _legible(text: str) -> str:
    return scrub(" ".join(text.split()))
