"""The commands that look into finished images of any engine: ``compare``."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..compare import compare as compare_trees
from ..detail import diffoscope
from ..errors import DifferenceError
from ..sources import tree_of
from .common import Settings, as_json, emit, table


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--limit", default=20, show_default=True, metavar="N", help="Show so many differences; 0: all.")
@as_json
@click.pass_obj
def compare(settings: Settings, first: str, second: str, *, limit: int, json_: bool) -> None:
    """Compare two images file by file.

    An image is a name or digest (docker:NAME, podman:NAME or oci:NAME, or NAME alone: the embedded store's,
    else Docker's or Podman's), an archive or an OCI layout (FILE#NAME where it holds several). Path, type,
    mode, owner and content of every file count, and the image's settings; time stamps do not. Exit status 13
    when they differ.

    \b
    reprobuild compare oci:team/torch:1 docker:team/torch:1
    """
    one, other = (tree_of(text, settings.home, settings.console) for text in (first, second))
    found = compare_trees(one, other)
    shown = found[:limit] if limit else found
    if json_:
        trees = [{"image": text, "tree": tree.digest} for text, tree in ((first, one), (second, other))]
        emit({"images": trees, "differences": [asdict(each) for each in found]})
    else:
        table("", [("first", f"{one.digest}  {first}"), ("second", f"{other.digest}  {second}")])
        for each in shown:
            click.echo(str(each))
        detail = diffoscope(shown, (first, second), settings.home, settings.console)
        if detail:
            click.echo(detail)
    if found:
        more = f"; {len(shown)} of them are shown" if len(shown) < len(found) else ""
        raise DifferenceError(f"{first} and {second} differ in {len(found)} places{more}")


COMMANDS: tuple[click.Command, ...] = (compare,)
