"""What a team asks of evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reprobuild.errors import EvidenceError
from reprobuild.render.program import selftest_program
from reprobuild.verify.evidence.keys import read_public_key
from reprobuild.verify.evidence.policy import Policy, read_policy
from support.evidence import write_key


def test_every_key_of_a_policy_is_read(tmp_path: Path) -> None:
    for name in ("team", "one", "two"):
        write_key(tmp_path / "keys", name)
    (tmp_path / "policy.toml").write_text(
        'keys = ["keys/team.pub"]\nchecks = ["conv2d", "conv2d (cuda)"]\ngpu = "NVIDIA H100"\n'
        'profile = "strict"\nmax-age-days = 90\nbuilders = 2\n'
        'builder-keys = ["keys/one.pub", "keys/two.pub"]\n'
    )
    found = read_policy(tmp_path / "policy.toml")
    assert (len(found.keys), len(found.builder_keys), found.builders) == (1, 2, 2)
    assert (found.checks, found.gpu, found.profile) == (["conv2d", "conv2d (cuda)"], "NVIDIA H100", "strict")
    assert found.max_age == timedelta(days=90)


def test_the_policy_of_the_page_is_valid_and_its_checks_exist(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/evidence.md").read_text()
    text = page.partition("## A policy")[2].partition("```toml\n")[2].partition("```")[0]
    for name in ("team", "ci", "audit"):
        write_key(tmp_path / "keys", name)
    (tmp_path / "policy.toml").write_text(text)
    program = selftest_program().decode()
    for check in read_policy(tmp_path / "policy.toml").checks:
        assert f"def {check.replace('-', '_')}(" in program


@pytest.mark.parametrize("text", ["", "# keys follow\n"])
def test_a_policy_that_asks_for_nothing_is_refused(text: str, tmp_path: Path) -> None:
    """A file that was cut short, or never written, would let every image pass."""
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(EvidenceError, match=r"policy.toml: asks for nothing"):
        read_policy(tmp_path / "policy.toml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("key = 1", "policy.toml: key: unknown key"),
        ("keys = []", "keys: is empty"),
        ("checks = []", "checks: is empty"),
        ('keys = ["none.pub"]', "none.pub: No such file"),
        ("keys = [3]", "expected text in quotes"),
        ("max-age-days = 0", "out of range"),
        ("max-age-days = true", "expected a whole number"),
        ("builders = 1", "builders: is 1, and builder-keys has 0 different keys"),
        (
            'builders = 2\nbuilder-keys = ["one.pub", "one.pub"]',
            "is 2, and builder-keys has 1 different key",
        ),
        (
            'keys = ["one.pub"]\nbuilders = 1\nbuilder-keys = ["one.pub"]',
            "is 1, and builder-keys has 0 different keys that sign no evidence",
        ),
        ('keys = ["a\\u0000.pub"]', "not the name of a file"),
        ('builders = 1\nbuilder-keys = ["a\\u0000.pub"]', "not the name of a file"),
        ('builder-keys = ["one.pub"]', "has no effect without builders"),
        ('gpu = ""', "gpu: .*a GPU's name"),
        ('profile = "strickt"', 'profile: .*"strict"'),
        ("keys = ", "not valid TOML"),
        ("\x00", "not valid TOML"),
    ],
)
def test_what_is_not_valid_is_refused_by_its_place(text: str, reason: str, tmp_path: Path) -> None:
    write_key(tmp_path, "one")
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(EvidenceError, match=reason):
        read_policy(tmp_path / "policy.toml")


def test_a_policy_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(EvidenceError, match=str(path)):
            read_policy(path)


def test_a_key_beside_a_policy_narrows_it(tmp_path: Path) -> None:
    """A policy that a team has committed must not get wider by a flag."""
    team, one, evil = (read_public_key(write_key(tmp_path, n).with_suffix(".pub")) for n in ("a", "b", "c"))
    policy = Policy(keys=[team, one], builder_keys=[one, evil], builders=1)
    assert policy.narrowed([]) == policy
    assert policy.narrowed([team]) == replace(policy, keys=[team], builder_keys=[evil])
    assert Policy().narrowed([evil]) == Policy(keys=[evil])
    with pytest.raises(EvidenceError, match="--key names a key that the policy's keys do not have"):
        policy.narrowed([team, evil])


def test_builders_beside_a_policy_are_never_fewer(tmp_path: Path) -> None:
    team, one, two = (read_public_key(write_key(tmp_path, n).with_suffix(".pub")) for n in ("a", "b", "c"))
    bare, strict = Policy(keys=[team]), Policy(keys=[team], builders=2, builder_keys=[one, two])
    assert bare.with_builders(0, []) == bare
    assert bare.with_builders(2, [one, two]) == strict
    assert strict.with_builders(0, []) == strict.with_builders(1, []) == strict
    for policy, builders, keys, reason in (
        (bare, 2, [one], "--builders is 2, and --builder-key has 1 different key that sign"),
        (bare, 2, [one, one], "has 1 different key"),
        (bare, 2, [one, team], "has 1 different key"),
        (bare, 1, [], "has 0 different keys"),
        (bare, 0, [one], "has no effect without --builders"),
        (strict, 3, [], "--builders is 3"),
        (strict, 2, [one], "the policy names the keys of builders itself"),
    ):
        with pytest.raises(EvidenceError, match=reason):
            policy.with_builders(builders, keys)
