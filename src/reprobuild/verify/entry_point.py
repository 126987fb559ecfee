"""The entry point of an image: what runs before a user's program. Pure.

It runs first, with the user's program as its arguments (image-spec, config.md).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence

from .compare import Difference
from .context import PREFIX, Context
from .links import folders, resolve

SHELLS = frozenset(("bash", "dash", "sh"))
_PYTHON = re.compile(r"python[0-9.]*")
_PLAIN_OPTIONS = re.compile(r"-[uBbqs]*[cm]?|-W.*|-X(faulthandler|importtime|tracemalloc|utf8)(=.*)?")
"""Options of Python that leave what it reads, and its hash seed, as they are."""

_INITS = {
    "tini": re.compile(r"-[sgvw]+|-[pe].+|--"),
    "dumb-init": re.compile(r"-[cv]+|--(single-child|verbose)|-r.+|--rewrite=?.+|--"),
}
"""Programs that start another one, wait for its processes and hand signals on, with their options."""
_WITH_A_WORD = frozenset(("-p", "-e", "-r", "--rewrite"))

_RELEASED_INITS = frozenset(
    (
        # https://github.com/krallin/tini/releases/tag/v0.19.0: tini and tini-static, for amd64 and arm64.
        "93dcc18adc78c65a028a84799ecf8ad40c936fdfc5f2a57b1acda5a8117fa82c",
        "07952557df20bfd2a95f9bef198b445e006171969499a1d361bd9e6f8e5e0e81",
        "c5b0666b4cb676901f90dfcb37106783c5fe2077b04590973b885950611b30ee",
        "eae1d3aa50c48fb23b8cbdf4e369d0910dfc538566bfd09df89a774aa84a48b9",
        # https://github.com/Yelp/dumb-init/releases/tag/v1.2.5, for x86_64 and aarch64.
        "e874b55f3279ca41415d290c512a7ba9d08f98041b28ae7c2acb19a545f1c4df",
        "b7d648f97154a99c539b63c55979cd29f005f88430fb383007fe3458340b795e",
        # Debian 12, for amd64 and arm64: tini and tini-static 0.19.0-1+b3, dumb-init 1.2.5-2.
        "3a809bd78682d860096f95718e77db0d3bb6d8e93c38135036d6c5b4e857d275",
        "91d7ee6af31b344e16231ff242cc643dcc3a7b6812ce095ab1ae4075c12c967b",
        "09ff331955a10c5b030f4d0aae3ce9c764437d368a7891fa0e3d8b1cd24e0279",
        "a7ab7d3face5024d6494d9ebb755d0337c5e983d6647f71e93fa67aceb30e0bd",
        "3781e4f6292a20344b5e79b5f95379cb7aae8c5f4ebad0b8c625df14bac8fe83",
        "a10beb193cec42470b0bdb6d4b05fe62b5eab1f9a0bfe28e7919265d91876293",
        # Debian 13: tini and tini-static 0.19.0-3+b8, dumb-init 1.2.5-3.
        "3e148efb1f764f243e477f45d73cebaeeeb9d4ddfb44405c10523497830a33e3",
        "80362ed0bcdac1fcfbf6614a205a3e399e0f1ae908cbc326d554771f16a513d4",
        "7cbd2eb7b2cbdb72ee234d4d3aef4a03176cd6a12daf4a740a78bf07f448f080",
        "cfb556e16d88ffa2d1c6d41e2a661e1a52597b279eec234ff5f2002c562c35aa",
        "bfbdc4f653ec7f200d8b256934ad005770d5fcb77929c6544baca02a2b1d3996",
        "f0c51adb2fef57b4f0f46eae747fd6ed55fb2176fd6d57ea01ede3a412322107",
    )
)
"""SHA-256 of inits as they were released, which a derived image may have although its lock does not."""


def entry_point(context: Context) -> Iterator[Difference]:
    """Find an entry point that is not a locked program, or Python with options that change its start."""
    given = _given(context)
    if given and not _is_plain(given, context):
        yield Difference("Entrypoint", "runs at start", "", json.dumps(given))


def python_start(context: Context) -> tuple[str, ...]:
    """Return the words by which the entry point starts Python, to which Python's own are added.

    Empty without an entry point, and for one that starts a program of its own alone.
    """
    given = _given(context)
    return tuple(_start(given, context) or ()) if given else ()


def imports_category(filters: str) -> bool:
    """Whether filters of warnings, as PYTHONWARNINGS and -W have them, name a category of another module.

    Python imports that at its start (warnings, "Describing Warning Filters").
    """
    return any("." in category for each in filters.split(",") for category in each.split(":")[2:3])


def program_path(name: str, context: Context) -> str | None:
    """Return the path of the program that a name starts, by PATH or the working directory (execvp(3))."""
    files = context.tree.files
    if "/" in name:
        return resolve(posixpath.join(context.start, name), files)
    for folder in folders(context.env.get("PATH", ""), context.start, files):
        path = resolve(f"{folder}/{name}", files)
        record = files.get(path or "")
        may_run = record.mode & 0o111 if record is not None and record.kind == "file" else 0
        if may_run:  # what nobody may run is passed over; what some may is another program for others
            return path if may_run == 0o111 else None
    return None


def _given(context: Context) -> list[str]:
    return [str(word) for word in context.tree.config.get("Entrypoint") or ()]


def _is_plain(words: Sequence[str], context: Context) -> bool:
    program, *arguments = words
    folder, _, name = program.rpartition("/")
    if (rest := _after_init(words, context)) is not None:
        return not rest or _is_plain(rest, context)
    path = program_path(program, context)
    if _PYTHON.fullmatch(name):
        plain = all(
            _PLAIN_OPTIONS.fullmatch(each) and not (each.startswith("-W") and imports_category(each[2:]))
            for each in _options(arguments)
        )
        place = f"{PREFIX}/bin"
        if folder:
            place = resolve(posixpath.join(context.start, folder), context.tree.files) or ""
        return plain and place == f"{PREFIX}/bin" and path in context.named
    # Nobody can tell what a script of a shell's or of perl's does before a user's program.
    return path in context.named and (not arguments or (path or "").startswith(f"{PREFIX}/bin/"))


def _after_init(words: Sequence[str], context: Context) -> list[str] | None:
    """Return the words that an init starts; None if the first is not an init, or has unknown options."""
    path = program_path(words[0], context) or ""
    record = context.tree.files.get(path)
    if record is None or record.kind != "file" or record.mode & 0o6000 or record.attributes:
        return None
    is_locked = path in context.named
    if not is_locked and record.content not in _RELEASED_INITS:
        return None
    name = path.rpartition("/")[2]
    known = _INITS.get(name.removesuffix("-static") if is_locked else _kind_of(name))
    left = list(words[1:])
    while known and left and left[0].startswith("-"):
        option = left.pop(0)
        if option == "--":
            break
        if option in _WITH_A_WORD and left:
            option += left.pop(0)
        if not known.fullmatch(option):
            return None
    return left if known else None


def _kind_of(name: str) -> str:
    """Return the init that a released file is, whatever it is called."""
    return "dumb-init" if "dumb" in name else "tini"


def _start(words: Sequence[str], context: Context) -> list[str] | None:
    if (rest := _after_init(words, context)) is not None:
        started = _start(rest, context) if rest else ["python3"]
        return None if started is None else [*words[: len(words) - len(rest)], *started]
    program, *arguments = words
    name = program.rpartition("/")[2]
    if _PYTHON.fullmatch(name):
        options = [re.sub(r"^(-[uBbqs]*)[cm]$", r"\1", each) for each in _options(arguments)]
        return [program, *(each for each in options if each != "-")]
    if name == "env":
        return [program, "python3"]
    return [program, "-c", 'exec "$0" "$@"', "python3"] if name in SHELLS else None


def _options(arguments: Sequence[str]) -> Iterator[str]:
    """Yield Python's options, which end at a script, ``-c`` or ``-m``; of ``-X NAME`` with the name."""
    left = iter(arguments)
    for argument in left:
        if not argument.startswith("-"):
            return
        yield argument + next(left, "") if argument in ("-X", "-W") else argument
        if argument.endswith(("c", "m")) or argument == "-":
            return
