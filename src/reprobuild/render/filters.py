"""Templates whose values must pass a filter that validates their form.

So nothing in a lock, whoever wrote it, can break out of its line in a rendered file. Pure.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from .. import assets
from ..errors import RenderError

if TYPE_CHECKING:
    from jinja2 import Environment


def fill(template: str, **values: object) -> bytes:
    """Return a file of ``templates/`` with its values. Raises `RenderError` that names value and place."""
    return environment().get_template(template).render(values).encode()


class _Checked(str):
    """Text that a filter has validated; a rendered file contains nothing else."""

    __slots__ = ()


def _only_checked(value: object) -> object:
    if not isinstance(value, _Checked):
        raise TypeError(f"a template writes {value!r} without a filter")
    return value


def _form(pattern: str, kind: str, value: object, place: str) -> _Checked:
    text = str(value)  # raises for a name that the template has and the values lack
    if not isinstance(value, str) or not re.fullmatch(pattern, text):
        raise _refusal(value, kind, place)
    return _Checked(text)


def _refusal(value: object, kind: str, place: str) -> RenderError:
    return RenderError(
        f"{place}: {value!r} is not {kind}, so it could break out of its line in the Dockerfile",
        hint="lock again with `reprobuild lock`; if that does not help, report it as a bug",
    )


def _comment(value: object, place: str) -> _Checked:
    # A backslash at the end would join the next line.
    checked = _form(r"[^\\]*", "text without a backslash", value, place)
    return printable(checked, place)


def _quoted(value: object, place: str) -> _Checked:
    # Inside a Dockerfile's double quotes a dollar expands and a backslash escapes.
    checked = _form(r'[^"\\$`]*', 'text without ", \\, $ and `', value, place)
    return _Checked(f'"{printable(checked, place)}"')


def _of_definition(value: object, place: str) -> _Checked:
    # Apptainer takes {{ NAME }} for a build argument, wherever it is, and a shell reads {""{ as {{.
    # https://apptainer.org/docs/user/latest/definition_files.html
    return _Checked(re.sub(r"\{(?=\{)", '{""', _quoted(value, place)))


def printable(value: str, place: str) -> _Checked:
    """Validate one line of printable text. Raises `RenderError`."""
    if not value.isprintable():
        raise _refusal(value, "one line of printable text", place)
    return _Checked(value)


def word(value: object, place: str) -> _Checked:
    """Validate one word for a shell or a path. Raises `RenderError`."""
    return _form(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*", "a plain word", value, place)


def _path(value: object, place: str) -> _Checked:
    return _form(r"/|(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)+", "an absolute path of plain words", value, place)


def minor(value: object, place: str) -> _Checked:
    """Validate a version of two numbers. Raises `RenderError`."""
    return _form(r"[0-9]+\.[0-9]+", "a minor version", value, place)


def _variable(value: object, place: str) -> _Checked:
    return _form(r"[A-Z][A-Z0-9_]*", "the name of a variable", value, place)


def _label(value: object, place: str) -> _Checked:
    return _form(r"[a-z][a-z0-9.-]*", "the name of a label", value, place)


def image(value: object, place: str) -> _Checked:
    """Validate the name of an image. Raises `RenderError`."""
    return _form(r"[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*", "the name of an image", value, place)


def _pinned(value: object, place: str) -> _Checked:
    form = (
        r"[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[a-z0-9._-]+)+(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?@sha256:[0-9a-f]{64}"
    )
    return _form(form, "an image by its digest", value, place)


def _deb(value: object, place: str) -> _Checked:
    return _form(
        r"[a-z0-9][a-z0-9+.-]*_[a-z0-9]+", "the name of a Debian package and its architecture", value, place
    )


def _url(value: object, place: str) -> _Checked:
    # No user and password either: they would stand in the image's history for all to read.
    form = r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9_.~%+!,;:=&?()/@-]*)?"
    return _form(form, "an address over HTTP of plain characters", value, place)


def _heredoc(value: object, place: str) -> _Checked:
    """Text between <<'END-OF-FILE' and END-OF-FILE, where nothing is expanded."""
    if not isinstance(value, str) or not value.endswith("\n") or "\r" in value or "\0" in value:
        raise _refusal(place, "a text file with whole lines", place)
    if "END-OF-FILE" in value.split("\n"):
        raise _refusal("END-OF-FILE", "a line that may stand in the file", place)
    return _Checked(value)


def _number(value: object, place: str = "number") -> _Checked:
    return _form(r"[0-9]+", "a number", str(value), place)


def sha256(value: object, place: str) -> _Checked:
    """Validate 64 hexadecimal digits. Raises `RenderError`."""
    return _form(r"[0-9a-f]{64}", "64 hex digits", value, place)


_FILTERS = {
    "comment": _comment,
    "deb": _deb,
    "heredoc": _heredoc,
    "image": image,
    "label": _label,
    "number": _number,
    "of_definition": _of_definition,
    "path": _path,
    "pinned": _pinned,
    "quoted": _quoted,
    "sha256": sha256,
    "url": _url,
    "variable": _variable,
    "word": word,
}


@cache
def environment() -> Environment:
    """Return jinja2's environment, in which every value must have passed a filter."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 -- slow; few commands render

    made = Environment(
        loader=FunctionLoader(assets.template),
        undefined=StrictUndefined,
        finalize=_only_checked,
        autoescape=False,  # noqa: S701 -- not HTML; the filters guard each line
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= _FILTERS
    return made
