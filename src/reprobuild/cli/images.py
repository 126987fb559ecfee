"""The command ``images``."""

from __future__ import annotations

import click

from ..host.console import size_text
from ..host.host import Host
from ..layers.unpacked_layers import MOST_BYTES, unpacked_sizes
from ..oci.store import ImageStore
from ..render.labels import LABEL
from .output import as_json, columns, emit, image_facts

_CANDIDATE = "<candidate>"
_LOST = "<name lost>"
"""For an image that lost its name with a damaged index."""


@click.command()
@as_json
@click.pass_obj
def images(host: Host, *, json_: bool) -> None:
    """List the images.

    A candidate is an image without a name: one that did not pass its self-test, for example. SIZE is
    compressed; UNPACKED is what its layers take that are unpacked for running, some of them for others too.
    An image whose manifest or configuration is damaged is listed as such.

    \b
    reprobuild images --json
    """
    store = ImageStore(host)
    found, bad, sizes = store.images(), store.damaged_images(), unpacked_sizes(host.home)
    layers = {each.digest: {diff for _, diff in store.layers(each.digest)} for each in found}
    unpacked = {digest: sum(sizes.get(diff, 0) for diff in diffs) for digest, diffs in layers.items()}
    if json_:
        damaged = [{"names": list(y.names), "digest": y.digest, "damaged": y.reason} for y in bad]
        emit([*({**image_facts(each), "unpacked": unpacked[each.digest]} for each in found), *damaged])
        return
    if not found and not bad:
        host.console.step("no images; `reprobuild image --cuda 12.1` makes one")
        return
    columns(
        ("NAME", "DIGEST", "SIZE", "UNPACKED", "PYTORCH", "CUDA"),
        [
            (
                name,
                each.digest[7:19],
                size_text(each.size),
                size_text(unpacked[each.digest]) if unpacked[each.digest] else "-",
                each.labels.get(LABEL + "torch", "-"),
                each.labels.get(LABEL + "cuda", "-"),
            )
            for each in found
            for name in each.names or (_LOST if each.recovered else _CANDIDATE,)
        ]
        + [
            (name, each.digest[7:19], "damaged", "-", "-", "-")
            for each in bad
            for name in each.names or (_CANDIDATE,)
        ],
    )
    for each in bad:
        drop = "`remove` drops it" if each.unreadable else "`clean` and `remove` drop it"
        host.console.warn(f"{each.reason}; `reprobuild image` makes it again, {drop}")
    if total := sum(sizes.values()):
        host.console.step(
            f"layers unpacked for running take {size_text(total)}, shared by images; at most "
            f"{size_text(MOST_BYTES)} stay"
        )
