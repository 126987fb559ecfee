"""arguments → pipeline. The only place that prints results and exits."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any

import click

from .. import __version__
from ..errors import ReprobuildError
from ..host.console import Console
from ..host.home import Home
from ..host.host import Host
from ..net.session import ScrubFilter, scrub
from . import comparing, diagnosis, handing_on, images, inspecting, locking, selftests


class _NobodyReadsError(Exception):
    """Standard output is a pipe whose reader has closed it."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Under another name: click would end with 1, which is the status of a bug.
            raise _NobodyReadsError from None
        return result


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option("-v", "--verbose", is_flag=True, help="Log commands and requests on standard error.")
@click.option("-q", "--quiet", is_flag=True, help="Print only results, warnings and errors.")
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, *, verbose: bool, quiet: bool) -> None:
    """Container images of PyTorch that have proven that the same seed gives the same bits.

    \b
    reprobuild image --cuda 12.1     lock, fetch, build, test and name, in one go
    reprobuild run reprobuild/torch:2.4.1-cu121-py311 -- python3 -c "import torch"
    """
    if verbose:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(relativeCreated)8.0f ms %(name)s: %(message)s"))
        handler.addFilter(ScrubFilter())
        logging.getLogger("reprobuild").addHandler(handler)
        logging.getLogger("reprobuild").setLevel(logging.DEBUG)
    context.obj = Host(Home.from_environment(), Console(quiet=quiet))


_GROUPS = (locking, comparing, diagnosis, images, inspecting, handing_on, selftests)
for command in (command for group in _GROUPS for command in group.COMMANDS):
    cli.add_command(command)


def main() -> None:
    """Run the command line; exits with 0, or with the code of what went wrong (docs/errors.md)."""
    _open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not so under nohup
            signal.signal(number, _stop)
    sys.exit(run())


def _open_standard_streams() -> None:
    """Connect closed standard streams to /dev/null: the next file opened would get their number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 -- it takes no keyword
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 -- for good


def _stop(number: int, _: FrameType | None) -> None:
    # An exception, so that children are stopped and temporary files removed on the way out.
    raise SystemExit(128 + number)


def run() -> int:
    """Run the command line; return its exit status. Errors go to standard error."""
    try:
        result = cli.main(prog_name="reprobuild", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("stopped", code=130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ReprobuildError as error:
        return _say(error.message, error.hint, code=error.exit_code)
    except _NobodyReadsError:
        # The reader of the output has gone; Python must not try to write the rest on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception:  # noqa: BLE001 -- the last resort: a bug, which its finder can report
        sys.stderr.write(scrub(traceback.format_exc()))
        return _say("this is a bug in reprobuild", "please report it with the lines above", code=1)
    return result if isinstance(result, int) else 0


def _say(message: str, hint: str = "", *, code: int) -> int:
    sys.stderr.write(f"reprobuild: {scrub(message)}\n")
    if hint:
        sys.stderr.write(f"  hint: {scrub(hint)}\n")
    return code
