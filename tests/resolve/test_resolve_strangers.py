"""Whatever an index or a registry answers: a result, or an error with a status, and nothing else."""

from __future__ import annotations

import gzip
from contextlib import suppress

import pytest
from hypothesis import strategies as st

from reprobuild.errors import ReprobuildError
from reprobuild.oci.documents import sha256
from reprobuild.oci.registry.client import Registry
from reprobuild.resolve.base_image import resolve_base
from support.bases import files as base_files
from support.fuzz import LONG, for_long, quickly
from support.hosts import quiet_host
from support.resolving import request
from support.strange_answers import _DEEP, Answer, Stranger, altered, written

pytest_plugins = ["support.strange_answers"]


_LAYER = gzip.compress(base_files(), mtime=0)
_CONFIG = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2024-01-01T00:00:00Z",
    "config": {"Env": ["PATH=/usr/local/bin", "A=b=c"]},
    "history": [{"created_by": "x"}],
    "rootfs": {"type": "layers", "diff_ids": [sha256(gzip.decompress(_LAYER))]},
}
_FORM = "application/vnd.oci.image.manifest.v1+json"


@st.composite
def registries(draw: st.DrawFn) -> dict[str, Answer]:
    """What a registry has: an image, its documents altered on the way."""
    config = draw(altered(_CONFIG).map(written) | st.binary(max_size=20) | st.just(_DEEP))
    blob = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": len(_LAYER)}
    manifest = {
        "schemaVersion": 2,
        "mediaType": _FORM,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": sha256(config),
            "size": len(config),
        },
        "layers": [{**blob, "digest": sha256(_LAYER)}],
    }
    top = draw(altered(manifest).map(written) | st.binary(max_size=20) | st.just(_DEEP))
    answers: dict[str, Answer] = {}
    if draw(st.booleans()):
        platform = {"os": "linux", "architecture": "amd64"}
        index = {
            "schemaVersion": 2,
            "manifests": [{"digest": sha256(top), "platform": platform, "size": len(top)}],
        }
        answers[f"/v2/team/base/manifests/{sha256(top)}"] = (200, {"Content-Type": _FORM}, top)
        top = draw(altered(index).map(written))
    headers = draw(
        st.dictionaries(
            st.sampled_from(["Content-Type", "Location", "WWW-Authenticate", "Docker-Content-Digest"]),
            st.sampled_from([
                _FORM, "text/html", "http://[", "//", "/v2/team/base/manifests/1", "ftp://a/b", "Bearer",
                "Basic realm=x",
                'Bearer realm="http://[::1",scope="a"', 'Bearer realm="file:///etc/passwd"', "",
            ]),
            max_size=2,
        )
    )  # fmt: skip
    status = draw(st.sampled_from([200, 200, 200, 200, 204, 301, 307, 401, 403, 404, 418]))
    answers["/v2/"] = (draw(st.sampled_from([200, 200, 200, 401, 404])), headers, b"")
    answers["/v2/team/base/manifests/1"] = (status, headers, top)
    answers[f"/v2/team/base/blobs/{sha256(config)}"] = (200, {}, config)
    answers[f"/v2/team/base/blobs/{sha256(_LAYER)}"] = (200, {}, _LAYER)
    return answers


def _lock_a_base(stranger: Stranger, answers: dict[str, Answer]) -> None:
    stranger.answers = answers
    with pytest.MonkeyPatch.context() as patch, suppress(ReprobuildError):
        patch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0})
        base = {"image": f"{stranger.host}/team/base:1"}
        resolve_base(request(base=base), "amd64", existing=None, host=quiet_host())


def test_the_image_that_is_altered_is_good_as_it_is(stranger: Stranger) -> None:
    config = written(_CONFIG)
    blob = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": len(_LAYER)}
    manifest = {"config": {"digest": sha256(config)}, "layers": [{**blob, "digest": sha256(_LAYER)}]}
    stranger.answers = {
        "/v2/": (200, {}, b""),
        "/v2/team/base/manifests/1": (200, {}, written(manifest)),
        f"/v2/team/base/blobs/{sha256(config)}": (200, {}, config),
        f"/v2/team/base/blobs/{sha256(_LAYER)}": (200, {}, _LAYER),
    }
    base = {"image": f"{stranger.host}/team/base:1"}
    assert resolve_base(request(base=base), "amd64", existing=None, host=quiet_host()) is not None


@quickly(15, answers=registries())
def test_what_a_registry_answers(stranger: Stranger, answers: dict[str, Answer]) -> None:
    _lock_a_base(stranger, answers)


@for_long(LONG // 8, answers=registries())
def test_what_a_registry_answers_at_length(stranger: Stranger, answers: dict[str, Answer]) -> None:
    _lock_a_base(stranger, answers)
