"""Solve match specs with py-rattler in a process of its own, independently of this machine.

py-rattler takes a fifth of a second to import, so no module should do so before a solve is wanted.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import HostError, ResolveError
from ..host import process
from ..host.limits import guarded, of_steps
from ..host.own_program import own_program
from ..lock.packages import CondaPackage
from ..net.session import scrub, without_credentials
from ..request.dates import end_of
from ..request.yaml_reader import load_yaml

_ARCHSPEC = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
_KERNEL = "5.10"
"""``__linux``: of Debian 11, older than any kernel that the images meet."""

LARGEST_LIST = 2 << 30
"""Bytes of a channel's list of packages, unpacked; the largest public one has 400 MB."""

MOST_SECONDS = 900
"""For fetching the lists and solving; half a minute is usual."""


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
    `ResolveError`: the solver's reason, a channel that cannot be read or is out of bounds, a package without
    sha256.
    """
    given = {"__unix": "0", "__linux": _KERNEL, "__archspec": "1", **virtual}
    job = {
        "specs": list(specs),
        "channels": list(channels),
        "alias": _alias(),
        "platform": platform,
        "virtual": [
            (name, version, _ARCHSPEC[platform] if name == "__archspec" else "0")
            for name, version in given.items()
        ],
        "constraints": list(constraints),
        "exclude_newer": None if as_of is None else end_of(as_of).isoformat(),
        "keep": [(package.name, package.filename, package.sha256) for package in keep],
        "largest": LARGEST_LIST,
    }
    said = _answer(job)
    text, asked = str(said.get("text")), _channels(job)
    match said.get("error"):
        case None:
            return tuple(_package(record) for record in sorted(said["packages"], key=lambda r: r["name"]))
        case "unsolvable":
            raise _unsolvable(text, as_of)
        case "channel" if "os error 27" in text or "File too large" in text:
            raise ResolveError(
                f"a conda channel's list of packages is larger than {LARGEST_LIST >> 20} MiB unpacked: "
                f"{_legible(text)}",
                hint="leave the channel out",
            )
        case "channel":
            raise ResolveError(
                # Of a connection that breaks off, the solver does not say which it was.
                f"a conda channel cannot be read{'' if '://' in text else f' ({asked})'}: {_legible(text)}",
                hint="check the channel's name or address, the network and the proxy; CONDA_CHANNEL_ALIAS "
                "says where channels without an address are",
            )
        case _:
            raise ResolveError(f"conda: {_legible(text)}", hint="correct it in the request")


def _answer(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run the program that solves, within the limits of a step: what channels serve is a stranger's."""
    with tempfile.TemporaryDirectory(prefix="reprobuild-conda-") as folder, guarded(of_steps()) as guard:
        answer = Path(folder, "answer.json")
        program = str(own_program("solve_conda.py"))
        slow = "a channel is slow, or no set of its packages fits: try again, or name fewer of both"
        try:
            what = f"the conda packages were not resolved ({_channels(job)})"
            with process.named_when_stopped(ResolveError, what, slow=slow):
                # -P: the modules beside the program are called torch and uv.
                process.run(
                    [sys.executable, "-P", program, str(answer)],
                    stdin=json.dumps(job).encode(),
                    timeout=MOST_SECONDS,
                    guard=guard,
                )
        except process.ProcessFailed as failed:
            raise ResolveError(f"conda: the solver failed: {_legible(failed.tail)}") from None
        said: Mapping[str, Any] = json.loads(answer.read_bytes())
        return said


def _channels(job: Mapping[str, Any]) -> str:
    return ", ".join(without_credentials(str(url)) for url in job["channels"])


def lets_in(spec: str, version: str) -> bool:
    """Whether a match spec accepts a version; its build string, which a wheel lacks, is ignored."""
    import rattler  # noqa: PLC0415 -- see above

    try:
        wanted = rattler.MatchSpec(spec).version
        return wanted is None or rattler.VersionSpec(wanted).matches(rattler.Version(version))
    except Exception:  # noqa: BLE001 -- py-rattler has a class a cause; what it cannot read says nothing
        return True


def _package(record: Mapping[str, Any]) -> CondaPackage:
    for missing in ("sha256", "size"):
        if record[missing] is None:
            raise ResolveError(
                f"the conda channel gives no {missing} of {record['file_name']}",
                hint="use a channel that does: without it a package cannot be locked",
            )
    time = record["uploaded"]
    return CondaPackage(
        name=record["name"],
        version=record["version"],
        build=record["build"],
        subdir=record["subdir"],
        url=without_credentials(record["url"]),
        sha256=record["sha256"],
        md5=record["md5"],
        size=record["size"],
        depends=tuple(record["depends"]),
        uploaded=None if time is None else datetime.fromisoformat(time),
        constrains=tuple(record["constrains"]),
    )


def _alias() -> str | None:
    """Where a channel is that has a name only, as conda is set up; None: where rattler has it."""
    alias = os.environ.get("CONDA_CHANNEL_ALIAS") or _condarc().get("channel_alias")
    if not alias:
        return None
    try:
        scheme = urlsplit(str(alias)).scheme
    except ValueError:  # brackets that hold no IPv6 address
        scheme = ""
    if scheme not in ("http", "https", "file"):
        raise HostError(
            f"conda's channel_alias is {scrub(str(alias))!r}, which is not a URL",
            hint="correct CONDA_CHANNEL_ALIAS, or channel_alias in ~/.condarc",
        )
    return str(alias)


def _condarc() -> Mapping[str, object]:
    file = Path(os.environ.get("CONDARC") or Path.home() / ".condarc")
    try:
        data = load_yaml(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
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
