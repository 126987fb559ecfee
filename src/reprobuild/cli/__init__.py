"""The command line. The only place that prints results and exits."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from .. import __version__
from ..errors import ReprobuildError
from ..host.console import Console, PrintableStream, printable

if TYPE_CHECKING:
    from types import FrameType

    from click.shell_completion import CompletionItem


class _NobodyReadsError(Exception):
    """Standard output is a closed pipe."""


COMMANDS = {
    "bundle": "Write everything that images are built from into one archive.",
    "check": "Check an image, or one built on it, against the lock in it.",
    "clean": "Free the space of what no image needs.",
    "compare": "Compare two images file by file.",
    "completion": "Print the completion script of a shell.",
    "convert": "Write a lock in a form that other tools read.",
    "diff": "Show what differs between two locks, and its likely effect.",
    "doctor": "Check whether this machine can build and run images.",
    "export": "Write an image to a file.",
    "image": "Make an image: lock, fetch, build, self-test, name.",
    "images": "List the images.",
    "inspect": "Show what is in an image, what was tested, and who says so.",
    "load": "Copy an image of the embedded store into Docker or Podman.",
    "lock": "Write the lock of a request.",
    "push": "Push an image of the embedded store to a registry.",
    "remove": "Remove names of images.",
    "render": "Write the Dockerfile of a lock, and everything that it copies.",
    "replay": "Run again what a receipt says, and name what is not as it was.",
    "run": "Run a command in an image; without one, Python.",
    "selftest": "Run the self-test of an image, or compare its reports.",
    "twice": "Run a program twice and say whether it repeats.",
    "verify": "Verify the evidence on an image: who signed it, and what it says.",
    "versions": "List the CUDA versions that your index has PyTorch for, each with the newest PyTorch.",
}
"""Each command, which has a module of its name, and the first sentence of its help."""


class _Loading(dict[str, click.Command]):
    """The commands by name, whose modules are imported on first use."""

    def __missing__(self, name: str) -> click.Command:
        module = importlib.import_module(f"{__package__}.{name}")
        self[name] = getattr(module, name)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in COMMANDS else default

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def items(self) -> Any:
        return [(name, self[name]) for name in COMMANDS]


_OWN_ARGUMENTS = ("diff", "replay", "run", "twice")
"""Commands whose ``-v`` binds a folder; the arguments of most are partly another program's."""

_ANYWHERE = ("-q", "--quiet", "-v", "--verbose")
_NO_CLOCK = ("completion", "run")
"""Commands that leave the terminal to others."""


class _Commands(click.Group):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loading()
        self.printed = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``-q`` and ``-v`` after the command too."""
        before, command, after = _split(args)
        if command is not None and command not in _OWN_ARGUMENTS:
            own, dashes = _own(after), after[len(_own(after)) :]
            moved = [arg for arg in own if arg in _ANYWHERE]
            args = [*before, *moved, command, *(arg for arg in own if arg not in _ANYWHERE), *dashes]
        if command == "image" and after:
            _check_request(after[0], ctx)
        if command in ("run", "twice") and _names_host(after, self.commands[command]):
            from .docker_habits import HOST_NAME

            raise click.UsageError(f"-h is for help and takes no value: {HOST_NAME}", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            from .docker_habits import COMMAND_HINTS

            if name in COMMAND_HINTS:
                raise click.UsageError(f"No such command {name!r}: {COMMAND_HINTS[name]}", ctx)
            like = get_close_matches(name, COMMANDS, n=2)
            told = f"; did you mean {' or '.join(like)}?" if like else ""
            raise click.UsageError(f"No such command {name!r}{told}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _ = ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name]) for name in names), *options]

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with self._printing():  # --help and --version print here
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with self._printing():
            try:
                return super().invoke(ctx)
            except click.UsageError as error:
                raise _hinted(error) from None

    @contextmanager
    def _printing(self) -> Iterator[None]:
        """Escape what is printed, and distinguish a closed pipe from a bug."""
        stdout, stream = sys.stdout, PrintableStream(sys.stdout)
        sys.stdout = cast("TextIO", stream)
        try:
            yield
            sys.stdout.flush()
        except BrokenPipeError:
            # Under another name: click would end with 1, which is the status of a bug.
            raise _NobodyReadsError from None
        finally:
            self.printed |= stream.used
            sys.stdout = stdout


def _check_request(word: str, ctx: click.Context) -> None:
    """Refuse ``image ls`` and the like of Docker, unless there is such a request."""
    from .docker_habits import COMMAND_HINTS

    hint = f"`reprobuild {word}` does it" if word in COMMANDS else COMMAND_HINTS.get(word)
    if hint is None or os.path.exists(f"envs/{word}.toml") or os.path.exists(word):  # noqa: PTH110 -- pathlib is slow to load
        return
    raise click.UsageError(f"No such request {word!r}: {hint}", ctx)


def _names_host(args: list[str], command: click.Command) -> bool:
    """Whether ``-h`` is Docker's, with a host name before the image: help would run nothing, with success."""
    valued = {
        name
        for each in command.params
        if isinstance(each, click.Option) and not each.is_flag
        for name in each.opts
    }
    words = iter(enumerate(args))
    for place, word in words:
        if re.match("-[it]*h", word):
            return not word.endswith("h") or len(args) > place + 2
        if word == "--" or not word.startswith("-"):
            return False
        if word in valued:
            next(words, None)
    return False


def _hinted(error: click.UsageError) -> click.UsageError:
    """Add what Docker's users need to an error for what they type."""
    import difflib

    from .docker_habits import ARGUMENT_HINTS, OPTION_HINTS

    name = error.ctx.info_name if error.ctx is not None else None
    if isinstance(error, click.NoSuchOption):
        hint = OPTION_HINTS.get(name or "", {}).get(error.option_name)
        if name in _OWN_ARGUMENTS and error.option_name in _ANYWHERE:
            hint = f"write it before the command, as in `reprobuild {error.option_name} {name}`"
        elif not hint and (near := difflib.get_close_matches(error.option_name, _ANYWHERE)):
            names = [*near, *(error.possibilities or ())]  # which click has of the command's own
            return click.NoSuchOption(error.option_name, possibilities=names, ctx=error.ctx)
        return click.UsageError(f"No such option {error.option_name}: {hint}", error.ctx) if hint else error
    if (hint := ARGUMENT_HINTS.get(name or "")) and "unexpected extra argument" in error.message:
        return click.UsageError(f"{error.message}: {hint}", error.ctx)
    return error


def _split(args: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Split arguments into those before the command, the command, and those after it."""
    place = next((n for n, arg in enumerate(args) if not arg.startswith("-")), len(args))
    return args[:place], args[place] if place < len(args) else None, args[place + 1 :]


def _own(args: list[str]) -> list[str]:
    return args[: args.index("--")] if "--" in args else args


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
        from .verbose import log_to_standard_error

        log_to_standard_error()
    from ..host.home import Home
    from ..host.host import Host
    from .misspelt import misspelt

    console = Console(quiet=quiet, verbose=verbose)
    for name, meant in misspelt(os.environ):
        console.warn(f"{name} is not a setting: is {meant} meant?")
    if isinstance(sys.stdout, PrintableStream):
        sys.stdout.before_write = console.rest
    if context.invoked_subcommand not in _NO_CLOCK:
        context.with_resource(console.clock())
    context.obj = Host(Home.from_environment(), console)


def main() -> None:
    """Run the command line; exits with 0, or with the code of what went wrong (docs/errors.md)."""
    _open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not so under nohup
            signal.signal(number, _stop)
    sys.exit(run_command_line())


def _open_standard_streams() -> None:
    """Connect closed standard streams to /dev/null: the next file opened would get their number.

    Standard output only for reading, so that a result which nobody can get is an error.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR), True)  # noqa: FBT003 -- it takes no keyword
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 -- for good


def _stop(number: int, _: FrameType | None) -> None:
    # An exception, so that children are stopped and temporary files removed on the way out.
    raise SystemExit(128 + number)


def run_command_line() -> int:  # noqa: PLR0911 -- one for each way to end
    """Run the command line; return its exit status.

    Errors go to standard error; with ``--json`` also to standard output, unless a result is there already.
    """
    cli.printed = False
    try:
        if "_REPROBUILD_COMPLETE" in os.environ:
            from .complete import register

            register()
        result = cli.main(prog_name="reprobuild", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("stopped", code=130)
    except SystemExit as error:
        if isinstance(error.code, int) and error.code in (128 + signal.SIGTERM, 128 + signal.SIGHUP):
            return _say("stopped", code=error.code)
        raise
    except click.ClickException as error:
        _print_json(type(error).__name__, error.format_message(), "", error.exit_code)
        return _show(error)
    except ReprobuildError as error:
        _print_json(type(error).__name__, error.message, error.hint, error.exit_code)
        _drop_output(sys.stdout)
        return _say(error.message, error.hint, code=error.exit_code)
    except _NobodyReadsError:
        _drop_output(sys.stdout)
        return 141
    except Exception as error:  # noqa: BLE001 -- the last resort: a bug, which its finder can report
        import traceback

        from ..host.machine_errors import machine_error

        if (known := machine_error(error)) is not None:
            _print_json(type(known).__name__, known.message, known.hint, known.exit_code)
            return _say(known.message, known.hint, code=known.exit_code)
        from ..net.scrubbing import scrub

        sys.stderr.write(printable(scrub(traceback.format_exc())))
        return _say("this is a bug in reprobuild", "please report it with the lines above", code=1)
    return result if isinstance(result, int) else 0


def _print_json(kind: str, message: str, hint: str, status: int) -> None:
    """Write an error to standard output where ``--json`` asks for it and nothing is there yet."""
    _, command, after = _split(sys.argv[1:])
    if cli.printed or command in (None, "run") or "--json" not in _own(after):
        return
    import json

    from ..net.scrubbing import scrub

    error = {"kind": kind, "message": scrub(message), "hint": scrub(hint), "status": status}
    with suppress(OSError):
        sys.stdout.write(printable(json.dumps({"error": error}, indent=2, ensure_ascii=False)) + "\n")


def _show(error: click.ClickException) -> int:
    """Print an error of click; return the exit status. Its argument may be untrusted."""
    from io import StringIO

    from ..net.scrubbing import scrub

    text = StringIO()
    error.show(text)
    sys.stderr.write(printable(scrub(text.getvalue())))
    return error.exit_code


def _drop_output(stream: TextIO) -> None:
    """Write what is left, or drop it: its reader has gone, or its disk is full; Python would fail on exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(message: str, hint: str = "", *, code: int) -> int:
    from ..net.scrubbing import scrub

    sys.stderr.write(printable(f"reprobuild: {scrub(message)}\n"))
    if hint:
        sys.stderr.write(printable(f"  hint: {scrub(hint)}\n"))
    return code
