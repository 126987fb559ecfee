"""Commands that draw by the system's generator, read from text; and what experiments put in their place."""

from __future__ import annotations

import os
import re
from typing import Any

MOST_BYTES = 1 << 16
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_MOST_PARENTS = 8


_DRAWING = re.compile(
    # Where a command stands, and not in the words of another one, such as ``command -v shuf``.
    r"(?:^|[|;&({`!]|(?:\b(?:then|do|else|xargs|env|nice|time|exec|sudo)|-c)[ \t]+[\"']?)"
    r"[ \t]*(?:\w+=\S*[ \t]+)*(?:[\w./]*/)?(?P<command>shuf\b|mktemp\b|ls (?:-\w+ )*-\w*t\w*(?= |$))"
    r"|\$\{?RANDOM\b|/dev/u?random\b|\bsort (?:-\w+ )*-\w*R\b|\bopenssl rand\b"
    r"|\bsrand\s*\(\s*\)"  # of awk, by the time: POSIX, awk, "Arithmetic Functions"
    r"|\bdate (?:-u )?[\"']?\+[\"']?%[sN]"  # a number, which may be a seed
    r"|\bxargs\b[^|;&]* (?:-P ?|--max-procs[= ])\"?(?:0|[2-9]|1\d|\$)"  # they write as they end
    r"|\bmake\b[^|;&\n]* (?:-\w*j|--jobs\b)(?! ?=?1\b)"  # recipes may begin before what they need is there
)
_BESIDE = re.compile(r"(?:^|[^&>|\\])&[ \t]*(?:#.*|;? *done\b.*)?$")
"""What a shell script starts beside what it does next."""
BESIDE = "&"
_SEEDED = re.compile(r"--random-source|\bRANDOM=\d")


def drawn_by(command: Any) -> str:
    """Return what a command, as text or words, draws by from the system's generator; empty: nothing known."""
    words = [command] if isinstance(command, (str, bytes)) else list(command)
    line = " ".join(os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike)))
    found = _DRAWING.search(line)
    if not found or _SEEDED.search(line):
        return ""
    return found["command"] or found[0]


def drawn_in(path: str) -> list[tuple[int, str, str]]:
    """Return the lines of a shell script that draw, what they draw by, and their text.

    A shell may read from a pipe, as from ``/dev/fd/63``: here that would be another, and nobody writes to it.
    """
    if not os.path.isfile(path):  # noqa: PTH113 -- as below
        return []
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not imported for this
            data = file.read(MOST_BYTES)
    except OSError:
        return []
    first = data.partition(b"\n")[0]
    if not path.endswith((".sh", ".bash")) and not (first.startswith(b"#!") and b"sh" in first):
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    if _SEEDED.search("\n".join(line for line in lines if "RANDOM=" in line)):
        lines = [line.replace("RANDOM", "") for line in lines]
    found = [
        (number, drawn_by(line) or (BESIDE if _BESIDE.search(line) else ""), line.strip()[:300])
        for number, line in enumerate(lines, 1)
        if not line.lstrip().startswith("#")
    ]
    return [each for each in found if each[1]]


def scripts(command: Any) -> list[str]:
    """Return the files that a command, as words, names."""
    words = [command] if isinstance(command, (str, bytes)) else list(command)
    found = [os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike))]
    found = [part for word in found for part in word.split()] if isinstance(command, (str, bytes)) else found
    return [word for word in found if os.path.isfile(word)]  # noqa: PTH113 -- as above


def parents_scripts() -> list[str]:
    """Return the shell scripts that started this process."""
    found, process = [], os.getpid()
    for _ in range(_MOST_PARENTS):
        try:
            with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 -- as above
                process = int(file.read().rpartition(b")")[2].split()[1])
            with open(f"/proc/{process}/cmdline", "rb") as file:  # noqa: PTH123 -- as above
                words = os.fsdecode(file.read()).split("\0")
        except (OSError, ValueError, IndexError):
            break
        if os.path.basename(words[0]).lstrip("-") in _SHELLS:  # noqa: PTH119 -- as above
            found += [word for word in words[1:4] if drawn_in(word)]
    return found


def one_by_one() -> None:
    """Let Bash wait for what a script has started beside it before each next command.

    https://www.gnu.org/software/bash/manual/bash.html#index-BASH_005fENV and index-trap
    """
    path = f"{os.environ['REPROBUILD_TWICE']}/one-by-one.sh"
    with open(path, "w") as file:  # noqa: PTH123 -- as above
        file.write("set -o functrace\ntrap wait DEBUG\n")
    os.environ["BASH_ENV"] = path


_DRAWN = 'exec {} --random-source=/dev/zero "$@"'
REPLACED = {
    "shuf": _DRAWN,
    "sort": _DRAWN,
    # Its own options come first, up to the command; -P is left out of them.
    "xargs": """n=$#
while [ $n -gt 0 ]; do
  n=$((n - 1)) word=$1
  shift
  case $word in
  -P | --max-procs) n=$((n - 1)) && shift && continue ;;
  -P* | --max-procs=*) continue ;;
  -[nILsdaE] | --arg-file | --delimiter) set -- "$@" "$word" "$1" && shift && n=$((n - 1)) && continue ;;
  esac
  set -- "$@" "$word"
  case $word in -*) ;; *) break ;; esac
done
while [ $n -gt 0 ]; do set -- "$@" "$1" && shift && n=$((n - 1)); done
exec {} "$@" """,
}
"""What each becomes that draws, or whose output is in the order in which processes end."""

BY_NAME = {
    "ls": """n=$#
while [ $n -gt 0 ]; do
  n=$((n - 1)) word=$1
  shift
  case $word in
  --*) ;;
  -*t*) word=$(printf %s "$word" | tr -d t) && [ "$word" != - ] || continue ;;
  esac
  set -- "$@" "$word"
done
exec {} "$@" """,
}
"""Entries sorted by their names in place of their times."""

_DATE = """for word; do
  case $word in -d* | --date* | -r* | --reference* | -f* | --file* | -s* | --set*) exec {} "$@" ;; esac
done
"""
"""One that asks for another date than the present gets it."""
FIXED_DATE = _DATE + 'exec {} -d @1900000000 "$@"'


ONE_JOB = 'exec {} "$@" -j1'
FIXED_NAME = """made=$({} "$@") || exit
case $made in */*) folder=${made%/*}/ ;; *) folder= ;; esac
number=0
until name=${folder}pinned$number && [ ! -e "$name" ]; do number=$((number + 1)); done
[ ! -e "$made" ] || mv "$made" "$name"
echo "$name"
"""
"""A file or folder with a number in the place of what is drawn, in the folder that was asked for."""


def faster_date(began: int, times: int) -> str:
    """Return what ``date`` becomes where clocks run faster since a time, in nanoseconds since 1970."""
    return f"""{_DATE}now=$({{}} +%s%N)
now=$(({began} + {times} * (now - {began})))
exec {{}} -d @$((now / 1000000000)).$(printf %09d $((now % 1000000000))) "$@\""""


def pin(kinds: Any) -> None:
    """Pin what commands do, of one kind."""
    if "commands" in kinds:
        replace(REPLACED)
    elif "newest" in kinds:
        replace(BY_NAME)
    elif "make" in kinds:
        replace({"make": ONE_JOB})
    elif "mktemp" in kinds:
        replace({"mktemp": FIXED_NAME})
    elif "background" in kinds:
        one_by_one()
    elif "dates" in kinds:
        replace({"date": FIXED_DATE})


def _shell() -> str:
    """Return a shell that passes on the functions which Bash exports: dash drops variables of such names."""
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def replace(programs: dict[str, str]) -> None:
    """Let commands of some names be shell scripts, which call the real ones, first in the path."""
    folder = f"{os.environ['REPROBUILD_TWICE']}/commands"
    path = os.environ.get("PATH", os.defpath)
    try:
        os.mkdir(folder)  # noqa: PTH102 -- as above
    except FileExistsError:  # by a process before; the program may have chosen another path since
        return
    for name, script in programs.items():
        found = next(
            (f"{each}/{name}" for each in path.split(":") if os.access(f"{each}/{name}", os.X_OK)), ""
        )
        if found:
            with open(f"{folder}/{name}", "w") as file:  # noqa: PTH123 -- as above
                file.write(f"#!{_shell()}\n{script.replace('{}', found)}\n")
            os.chmod(f"{folder}/{name}", 0o755)  # noqa: PTH101, S103 -- as above; the program runs it
    os.environ["PATH"] = f"{folder}:{path}"
