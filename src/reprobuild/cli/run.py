"""The command ``run``."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..engines.embedded import OciEngine
from ..engines.protocols import RunOptions
from ..errors import BuildError, ImageError, RequestError
from ..host.home import atomic_write, make_folders
from ..host.host import Host
from ..host.sandbox import Bind
from ..host.untrusted_files import opened, walk
from ..in_image.kernels import is_of_record, record_of
from ..request.kernels import MOST, canonical
from . import complete
from .output import file_option
from .run_options import in_image, own_command, receipt, settings


# Options end at the image: what follows is the command's own, with or without "--" before it.
@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("image", shell_complete=complete.images)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] [COMMAND]...")
@receipt
@in_image
@click.option(
    "-i",
    "--interactive",
    is_flag=True,
    help="Accepted for compatibility: standard input is always passed in.",
)
@click.option("-t", "--tty", is_flag=True, help="Fail unless standard input and output are a terminal.")
@file_option("--require", "policy", text="Run only if the evidence on the image meets this policy (TOML).")
@file_option(
    "--record-kernels",
    "record",
    text="Let torch.compile choose kernels by timing, and write the choices, for determinism.kernel-choices.",
)
@click.option("--rm", is_flag=True, help="Accepted for compatibility: nothing of a run is kept.")
@click.pass_obj
def run(
    host: Host,
    /,
    image: str,
    command: tuple[str, ...],
    *,
    receipt: Path | None,
    interactive: bool,  # noqa: ARG001 -- as it is always
    tty: bool,
    policy: Path | None,
    record: Path | None,
    rm: bool,  # noqa: ARG001 -- as it is always
    **options: Any,
) -> int:
    """Run a command in an image; without one, Python.

    Ends with the command's exit status. What the command writes outside volumes is lost afterwards. It gets
    signals such as Ctrl-C, and a terminal if there is one. With network it also gets this machine's CA
    certificates, in SSL_CERT_FILE, REQUESTS_CA_BUNDLE and PIP_CERT. Options come before the image.

    \b
    reprobuild run -v $PWD:/work -w /work \\
        reprobuild/torch:2.4.1-cu121-py311 -- python3 train.py
    """
    command = own_command(command, "run")
    if tty and not (os.isatty(0) and os.isatty(1)):
        raise click.UsageError("-t: standard input and output are not a terminal; omit -t")
    given = settings(host.console, **options)
    if record is not None and receipt is not None:
        raise click.UsageError(
            "--receipt excludes --record-kernels: choices of kernels that are not locked repeat nothing"
        )
    if policy is not None:
        from ..verify.required import require  # noqa: PLC0415 -- keys take a tenth of a second to load

        # By its digest from here on: the name could be given to another image meanwhile.
        image = require(f"oci:{image}", policy, host).subject.manifest
    if record is not None:
        return _recorded(host, image, command, given, record)
    if receipt is None:
        status = OciEngine(host).run(image, command, given)
    else:
        from .receipts import run_with_receipt  # noqa: PLC0415 -- a plain `run` need not wait for it

        status = run_with_receipt(host, image, command, given, receipt)
    return status if status >= 0 else 128 - status


_FOLDER = "/run/reprobuild/kernels"


def _recorded(host: Host, image: str, command: tuple[str, ...], given: RunOptions, file: Path) -> int:
    """Run a command with its choices of kernels kept, and write them to a file if it succeeds."""
    with host.home.scratch("kernels") as scratch:
        folder = scratch / "written"
        folder.mkdir()
        folder.chmod(0o777)  # the command may be another user's in the image
        bind = Bind(source=folder, destination=_FOLDER, writable=True)
        env = {**given.env, "REPROBUILD_KERNELS": f"record:{_FOLDER}"}
        options = replace(given, env=env, binds=[*given.binds, bind])
        status = OciEngine(host).run(image, command, options)
        if status != 0:
            host.console.step(f"{file} is not written: the command failed")
            return status if status > 0 else 128 - status
        try:
            text = record_of(_texts(folder))
            canonical(text, image)
        except (ValueError, OSError, BuildError, RequestError) as error:
            raise ImageError(
                f"{image}: no choices of kernels to record: {error}",
                hint='use torch.compile(..., mode="max-autotune") or @triton.autotune in the command; '
                "`reprobuild lock --upgrade reprobuild` and `reprobuild image` rebuild an old image",
            ) from None
    make_folders(file.absolute().parent)
    atomic_write(file, text.encode())
    host.console.step(f"choices of kernels written to {file}")
    return 0


def _texts(folder: Path) -> dict[str, str]:
    """Return the files of a record that a command, which may be anybody's, has left in a folder, by path.

    Raises ValueError, OSError, `BuildError`.
    """
    found: dict[str, str] = {}
    left = MOST
    for path, status in walk(folder):
        if stat.S_ISREG(status.st_mode) and is_of_record(path):
            with opened(folder, path) as file:
                data = file.read(left + 1)
            left -= len(data)
            if left < 0:
                raise ValueError(f"more than {MOST:,} bytes of choices")
            found[path] = data.decode()
    return found
