"""Shell completion of images, requests, locks and files. Imports little, because completion must be fast."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

from ..errors import ReprobuildError
from ..host.console import Console, printable
from ..host.home import Home
from ..host.host import Host

VARIABLE = "_REPROBUILD_COMPLETE"
"""With it set, as the shells' scripts do, the command line answers what completes it."""

_BASH = r"""%(complete_func)s() {
    local response type value
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \
        %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Completion of words that contain ``:``, such as names of images, which Bash splits."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the incomplete word at it."""
        line = os.environ.get("COMP_LINE", "")
        words = click.shell_completion.split_arg_string(line)
        if not words or line[-1:].isspace():
            words.append("")
        return words[1:-1], words[-1]

    def complete(self) -> str:
        """Return a line for each completion, without what is before Bash's own idea of the word."""
        args, incomplete = self.get_completion_args()
        breaks = set(os.environ.get("COMP_BREAKS", "")) & set(":=@")
        before = incomplete[: max((incomplete.rfind(each) for each in breaks), default=-1) + 1]
        items = self.get_completions(args, incomplete)
        return "\n".join(f"{item.type},{str(item.value).removeprefix(before)}" for item in items)


def register() -> None:
    """Register these completions with click."""
    add_completion_class(Bash)


def script(command: click.Command, shell: str) -> str:
    """Return the completion script of a shell, to be sourced."""
    register()
    found: type[ShellComplete] | None = get_completion_class(shell)
    assert found is not None
    return found(command, {}, "reprobuild", VARIABLE).source()


_Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_Source = Callable[[str], Iterable[str]]


def _completer(*sources: _Source, files: bool = False) -> _Completer:
    """Return what completes from some sources, and where nothing of them fits, perhaps with files."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        values = {value for source in sources for value in source(incomplete)}
        fit = sorted(v for v in values if v.startswith(incomplete) and v == printable(v) and "\n" not in v)
        if not fit and files:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(value) for value in fit]

    return complete


def _images(_: str) -> list[str]:
    from ..oci.store import ImageStore  # noqa: PLC0415 -- of all that is completed, this alone needs it

    try:
        host = Host(Home.from_environment(), Console(quiet=True))
        with redirect_stderr(StringIO()):  # nor for a warning
            return [name for image in ImageStore(host).images() for name in image.names]
    except ReprobuildError:
        return []  # a TAB is no place for it; the command itself says what is wrong


def _requests(incomplete: str) -> list[str]:
    found = [path for path in _envs() if not path.name.startswith("pylock.")]
    # As files too once a path has been begun.
    return [path.stem for path in found] + ([str(path) for path in found] if _is_path(incomplete) else [])


def _locks(incomplete: str) -> list[str]:
    return [str(p) for p in _envs() if p.name.startswith("pylock.")] if _is_path(incomplete) else []


def _envs() -> list[Path]:
    return list(Path("envs").glob("*.toml"))


def _is_path(incomplete: str) -> bool:
    return incomplete.startswith("envs/") or (incomplete != "" and "envs/".startswith(incomplete))


images = _completer(_images)
images_or_files = _completer(_images, files=True)
envs = _completer(_requests, files=True)
locks = _completer(_requests, _locks, files=True)
anything = _completer(_requests, _locks, _images, files=True)
files = _completer(files=True)
platforms = _completer(lambda _: ("linux/amd64", "linux/arm64"))
