"""Record which layers a registry has."""

from __future__ import annotations

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import ImageError
from reprobuild.layers.registry_push import publish_layers
from reprobuild.oci.registry.client import Target
from reprobuild.oci.registry.push import push
from support.fixtures import fixtures_of
from support.teams import NONE, Fresh, Team

globals().update(fixtures_of("support.teams"))


def test_an_image_of_another_lock_is_not_recorded(team: Team) -> None:
    other = team.build(team.locked("torch", "other"))
    images = OciEngine(team.host).images
    target = Target.parse(f"{team.registry}/team/x:1")
    with pytest.raises(ImageError, match="cannot be recorded"):
        publish_layers(team.lock, images.find(other), images, target, team.host, record=NONE)


def test_the_record_forgets_what_no_lock_has(team: Team) -> None:
    lock = team.locked("torch", "other")
    record = team.publish(lock, team.build(lock), team.record)
    before, after = ({each.title for each in r.layers.values()} for r in (team.record, record))
    assert (after - before, before - after) == ({"other 1.0"}, {"toy 1.0"})
    assert len(record.images) == 1


def test_who_took_layers_can_record_what_is_new(team: Team, fresh: Fresh) -> None:
    changed = team.locked("torch", "other")
    assert not fresh.take(team.record, lock=changed)
    digest = fresh.build(changed, wheels=True)
    images, target = OciEngine(fresh.host).images, Target.parse(f"{team.registry}/team/x:2")
    images.name(digest, "team/x:1")
    image = images.find(digest)
    push(images, image, target, fresh.host.console, force=True)
    record = publish_layers(changed, image, images, target, fresh.host, record=team.record)
    assert {"other 1.0", "torch 1.0"} <= {each.title for each in record.layers.values()}
