"""The command ``compare``."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..errors import DifferenceError
from ..host.console import one_line
from ..host.host import Host
from ..verify.compare import compare as compare_trees
from ..verify.diffoscope import diffoscope
from ..verify.find import tree_of
from . import complete
from .output import as_json, emit, table


@click.command()
@click.argument("first", shell_complete=complete.images_or_files)
@click.argument("second", shell_complete=complete.images_or_files)
@click.option(
    "--limit", default=20, show_default=True, metavar="N", help="Show at most this many differences; 0: all."
)
@as_json
@click.pass_obj
def compare(host: Host, first: str, second: str, *, limit: int, json_: bool) -> None:
    """Compare two images file by file.

    An image is a name or digest (docker:NAME, podman:NAME or oci:NAME; NAME alone is looked up in the
    embedded store, then in Docker, then in Podman), an archive or an OCI layout (FILE#NAME if it holds
    several). Path, type, mode, owner and content of every file count, and the image's settings; time stamps
    do not. Exit status 13 if they differ.

    \b
    reprobuild compare oci:team/torch:1 docker:team/torch:1
    """
    one, other = (tree_of(text, host) for text in (first, second))
    found = compare_trees(one, other)
    shown = found[:limit] if limit else found
    if json_:
        trees = [{"image": text, "tree": tree.digest} for text, tree in ((first, one), (second, other))]
        unknown = sorted({*one.unknown, *other.unknown})
        emit({"images": trees, "differences": [asdict(each) for each in found], "not_read": unknown})
    else:
        table("", [("first", f"{one.digest}  {first}"), ("second", f"{other.digest}  {second}")])
        for each in shown:
            click.echo(one_line(str(each)))
        detail = diffoscope(shown, (first, second), host)
        if detail:
            click.echo(detail)
    if found:
        more = f"; {len(shown)} of them are shown" if len(shown) < len(found) else ""
        raise DifferenceError(f"{first} and {second} differ in {len(found)} places{more}")
