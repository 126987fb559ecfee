"""Layers from a team's registry: a real docker-registry on loopback, partly through a gate that fails."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import LockError
from reprobuild.layers import registry_pull
from reprobuild.layers.cache import Cached, LayerCache
from reprobuild.layers.clean import clean_home
from reprobuild.layers.plan import plan, plan_digest
from reprobuild.layers.registry_pull import Pace, dump_paths
from reprobuild.lock.layer_record import LayerRecord, RecordedImage, RecordedLayer
from reprobuild.oci.documents import sha256
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.oci.tar_writer import LayerWriter
from support.building import lock_for, no_context
from support.fixtures import fixtures_of
from support.registry import PASSWORD, USER, Gate, gate_before
from support.server import serve
from support.teams import HASTY, NONE, Fresh, Team
from support.wheels import put, simple_wheel, wheel_bytes

globals().update(fixtures_of("support.teams"))


@pytest.fixture
def gate(team: Team) -> Iterator[Gate]:
    with gate_before(team.registry) as found:
        yield found


def test_a_fresh_machine_needs_no_wheel_and_gets_the_same_digest(
    team: Team, fresh: Fresh, ran: list[str]
) -> None:
    record = team.record
    ran.clear()
    assert fresh.take(record)
    assert fresh.build(wheels=False) == team.digest
    assert ran == []
    assert not (fresh.home.root / "store/sha256").exists()
    assert list((fresh.home.root / "store/partial").iterdir()) == []


def test_what_comes_is_unpacked_where_the_image_is_to_run(team: Team, fresh: Fresh) -> None:
    assert fresh.take(team.record, lay_out=True)
    roots = fresh.home.root / "roots"
    assert all((roots / layer.diff_id[7:]).is_dir() for layer in team.record.layers.values())
    assert fresh.build(wheels=False) == team.digest


def test_a_layer_that_unpacks_to_something_else_than_recorded_is_refused(team: Team, fresh: Fresh) -> None:
    key, layer = next(iter(team.record.layers.items()))
    lie = replace(layer, diff_id=f"sha256:{'0' * 64}")
    with pytest.raises(LockError, match=f"not to {lie.diff_id}"):
        fresh.take(replace(team.record, layers={**team.record.layers, key: lie}), lay_out=True)
    assert not (fresh.home.root / "roots" / lie.diff_id[7:]).exists()


def test_with_all_layers_there_the_registry_is_not_asked(team: Team, fresh: Fresh, gate: Gate) -> None:
    record = team.record
    assert fresh.take(record, gate.host)
    gate.log.clear()
    assert fresh.take(record, gate.host)
    assert gate.log == []


def test_what_has_changed_since_is_built(
    team: Team, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    record, changed = team.record, team.locked("torch", "other")
    assert not fresh.take(record, lock=changed)
    assert "the record has 4 of the 5 layers of this lock" in capsys.readouterr().err
    built = fresh.build(changed, wheels=True)
    assert "1 of 6 layers to build" in capsys.readouterr().err
    assert built == team.build(changed)


def test_a_package_that_lost_a_file_to_one_that_is_gone_is_built(team: Team, fresh: Fresh) -> None:
    """The keys of the lock alone are all in the record, but it was made beside another package."""
    packages = [
        put(team.home, "torch", simple_wheel("torch")),
        put(team.home, "alpha", wheel_bytes("alpha", "1.0", {"torch/__init__.py": "ours"})),
    ]
    both, one = lock_for(team.home, packages), lock_for(team.home, packages[:1])
    digest = team.build(both)
    record = team.publish(both, digest)
    assert plan_digest(plan(one)) != plan_digest(plan(both))
    assert not fresh.take(record, lock=one)
    assert fresh.build(one, wheels=True) == team.build(one)
    assert fresh.take(record, lock=both)
    assert fresh.build(both, wheels=False, record=record) == digest


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([404], "does not have the layer of torch 1.0; it is built"),
        (["drop"] * 99, "the connection failed"),
    ],
)
def test_a_layer_that_cannot_be_had_is_built(
    faults: Sequence[int | str],
    said: str,
    team: Team,
    fresh: Fresh,
    gate: Gate,
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = team.record
    torch = next(each for each in record.layers.values() if each.title == "torch 1.0")
    gate.faults[f"(HEAD|GET) /v2/team/x/blobs/{torch.digest}"] = list(faults)  # type: ignore[arg-type]
    assert not fresh.take(record, gate.host)
    err = capsys.readouterr().err
    assert said in err
    assert "it is built" in err
    assert len(fresh.has(record)) == len(record.layers) - 1
    assert fresh.build(wheels=True) == team.digest
    assert "1 of 6 layers to build" in capsys.readouterr().err


@pytest.mark.parametrize(("harm", "what"), [("wrong", "digest"), ("cut", "digest"), ("wrong", "paths")])
def test_a_blob_with_other_bytes_is_not_taken(
    harm: str, what: str, team: Team, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    record = team.record
    torch = next(each for each in record.layers.values() if each.title == "torch 1.0")
    digest = str(getattr(torch, what))[7:]
    [blob] = (team.home.root.parent / "registry").glob(f"**/sha256/{digest[:2]}/{digest}/data")
    data = blob.read_bytes()
    blob.write_bytes(data[:-9] if harm == "cut" else bytes(reversed(data)))
    try:
        assert not fresh.take(record)
    finally:
        blob.write_bytes(data)
    assert "torch 1.0" in capsys.readouterr().err
    assert len(fresh.has(record)) == len(record.layers) - 1
    # The bytes that were wrong are not what the next try begins with.
    assert fresh.take(record)
    assert fresh.build(wheels=False) == team.digest


def test_a_registry_that_dies_is_given_up_soon(
    team: Team, fresh: Fresh, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = team.record.layers[team.record.keys_of(plan_digest(plan(team.lock)))[-1]]  # type: ignore[index]
    lock = team.locked("torch", *(f"toy{n}" for n in range(30)))
    many = {each.key: replace(layer, key=each.key) for each in plan(lock)}
    image = RecordedImage(plan=plan_digest(plan(lock)), layers=tuple(many))
    record = LayerRecord(images={"x": image}, layers=many)
    gate.faults["(HEAD|GET) /v2/team/x/blobs/.*"] = ["drop"] * 9999
    assert not fresh.take(record, gate.host, lock)
    err = capsys.readouterr().err
    assert "has failed 4 times; it is asked for no more layers" in err
    assert err.count("it is built") <= 8  # those that were on their way then may still be told of


def test_a_registry_that_is_not_there_is_told_and_all_is_built(
    team: Team, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    record = team.record
    assert not fresh.take(record, "127.0.0.1:1")
    assert "the layers are built" in capsys.readouterr().err


def test_a_registry_that_is_too_slow_is_given_up(
    team: Team, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    record = team.record
    with serve() as server:
        server.add("/v2/", b"{}")
        for layer in record.layers.values():
            server.add(f"/v2/team/x/blobs/{layer.digest}", b"x" * layer.size)
            server.add(f"/v2/team/x/blobs/{layer.paths}", b"x" * layer.paths_size, stall_at=20)
        assert not fresh.take(record, server.url.partition("//")[2].strip("/"), pace=0.3)
    assert "gives less than 1.0 MB a second; 5 of its layers are built" in capsys.readouterr().err
    assert fresh.build(wheels=True) == team.digest


def test_a_registry_with_a_login(
    team: Team,
    fresh: Fresh,
    gate: Gate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    gate.token = "s3cret"
    assert not fresh.take(team.record, gate.host)
    assert f"`docker login {gate.host}`" in capsys.readouterr().err
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {gate.host: {"auth": auth}}}))
    assert fresh.take(team.record, gate.host)


def test_a_record_that_names_something_else_than_paths_is_refused(team: Team, fresh: Fresh) -> None:
    record = team.record
    bad = {key: replace(each, paths=each.digest, paths_size=each.size) for key, each in record.layers.items()}
    with pytest.raises(LockError, match="names no list of paths"):
        fresh.take(replace(record, layers=bad))


def test_who_does_not_have_the_record_gets_nothing_of_it(
    team: Team, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record of a pull request is one person's word: it decides that person's image, and no other."""
    right = team.record
    by_title = {each.title: each for each in right.layers.values()}
    toy, torch = by_title["toy 1.0"], by_title["torch 1.0"]
    # The layer of toy is that of torch, it says; and the lock's layers have that of torch twice.
    wrong = replace(torch, key=toy.key, title=toy.title)
    [(name, image)] = right.images.items()
    harmful = LayerRecord(
        images={name: replace(image, layers=tuple(torch.key if k == toy.key else k for k in image.layers))},
        layers={**right.layers, toy.key: wrong},
    )
    assert fresh.take(harmful)
    assert fresh.build(wheels=False, record=harmful) != team.digest
    capsys.readouterr()
    assert fresh.has(NONE) == []
    assert fresh.build(wheels=True, record=NONE) == team.digest
    assert "building 6 layers" in capsys.readouterr().err
    # And what was made here goes before what a record says of it.
    assert fresh.build(wheels=False, record=harmful) == team.digest


def test_what_is_made_over_a_taken_layer_stays_with_its_record(team: Team, fresh: Fresh) -> None:
    """A taken system's interpreter compiles the wheels, so their layers are its record's word too."""
    [taken] = [each for each in team.record.layers.values() if each.title.startswith("Debian ")]
    record = LayerRecord(images={}, layers={taken.key: taken})
    assert not fresh.take(record)
    assert fresh.build(wheels=True, record=record) == team.digest
    cache = LayerCache(fresh.home)
    assert [layer.title for layer in plan(team.lock) if cache.get(layer.key)] == []
    assert cache.keys(plan_digest(plan(team.lock))) is None
    # With the record they are there again, and with another one they are not.
    assert LayerCache(fresh.home, record).known(plan_digest(plan(team.lock)))
    other = LayerRecord(images={}, layers={taken.key: replace(taken, title="other")})
    assert not LayerCache(fresh.home, other).known(plan_digest(plan(team.lock)))
    assert fresh.build(wheels=True, record=NONE) == team.digest
    assert cache.known(plan_digest(plan(team.lock)))


def test_what_a_record_brought_is_kept_while_an_image_has_it(team: Team, fresh: Fresh) -> None:
    assert fresh.take(team.record)
    engine = OciEngine(fresh.host, record=team.record)
    engine.images.name(engine.build(team.lock, no_context), "team/x:1")
    clean_home(fresh.host, everything=False)
    assert len(fresh.has(team.record)) == 5
    engine.images.remove("team/x:1")
    clean_home(fresh.host, everything=False)
    assert fresh.has(team.record) == []


def lying(team: Team, folder: Path, key: str, paths: Sequence[str], said: Mapping[str, Any]) -> LayerRecord:
    """Return a record of one pushed layer with some files, whose list has the paths with a ``x`` alone."""
    with (folder / "blob").open("wb") as out:
        writer = LayerWriter(out)
        for path in paths:
            writer.file(path, 0o644, 1, [b"1"])
        layer = writer.close()
    listed = dump_paths(Cached(layer, tuple(each for each in writer.records if "x" in each.path)))
    (folder / "paths").write_bytes(listed)
    registry = Registry(Target.parse(f"{team.registry}/team/x:lying"))
    for digest, name in ((layer.digest, "blob"), (sha256(listed), "paths")):
        registry.send_blob(digest, folder / name, lambda _: None)
    own = RecordedLayer(
        key=key,
        title="lying",
        diff_id=layer.diff_id,
        digest=layer.digest,
        size=layer.size,
        media_type=layer.media_type,
        paths=sha256(listed),
        paths_size=len(listed),
    )
    return LayerRecord(images={}, layers={key: replace(own, **said)})


@pytest.mark.parametrize(
    "hidden",
    [
        "opt/venv/lib/python3.11/site-packages/sitecustomize.py",
        "opt/reprobuild/y",
        "usr/bin/.wh.sh",
        "usr/.wh..wh..opq",
    ],
)
def test_a_list_that_keeps_a_path_quiet_is_refused(
    team: Team, fresh: Fresh, tmp_path: Path, hidden: str
) -> None:
    """By the list it is judged whether a name is reprobuild's own, and the image's manifest is written."""
    toy = next(each for each in team.record.layers.values() if each.title == "toy 1.0")
    with pytest.raises(LockError, match="the record of layers is wrong about lying"):
        fresh.take(lying(team, tmp_path, toy.key, ["usr/x", hidden], {}))
    assert fresh.has(NONE) == []


def test_a_layer_that_claims_the_files_of_one_that_is_unpacked_here_is_refused(
    team: Team, fresh: Fresh, tmp_path: Path
) -> None:
    """Else the self-test would run those files, and the image have others."""
    fresh.build(wheels=True, record=NONE)
    lock = team.locked("torch", "other")
    other = next(each for each in plan(lock) if each.title == "other 1.0")
    toy = next(each for each in team.record.layers.values() if each.title == "toy 1.0")
    record = lying(team, tmp_path, other.key, ["usr/x"], {"diff_id": toy.diff_id})
    with pytest.raises(LockError, match=r"it unpacks to sha256:\S+, not to"):
        fresh.take(record, lock=lock)


@pytest.mark.parametrize("count", [0, 4, 6])
def test_a_record_with_more_or_fewer_layers_than_the_lock_is_refused(
    team: Team, fresh: Fresh, count: int
) -> None:
    [(name, image)] = team.record.images.items()
    layers = (image.layers * 2)[:count]
    record = replace(team.record, images={name: replace(image, layers=layers)})
    with pytest.raises(LockError, match=f"gives this lock {count} layers, and it has 5"):
        fresh.take(record)


def test_while_a_layer_is_compared_the_registry_is_not_slow(
    fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Target.parse_repository("registry.example/team/x")
    taking = registry_pull._Taking(source, fresh.host, HASTY, Pace(seconds=0.2), lay_out=False)

    def compare() -> None:
        for _ in range(20):
            taking._looked(10**9)
            time.sleep(0.05)

    with ThreadPoolExecutor() as pool:
        taking._watch({pool.submit(compare)})
    assert capsys.readouterr().err == ""
