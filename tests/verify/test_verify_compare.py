from __future__ import annotations

from typing import Any

import pytest

from reprobuild.oci.file_tree import ImageTree
from reprobuild.oci.tar_writer import Kind, Record
from reprobuild.verify.compare import Difference, compare, settings


def tree(*records: Record, **config: Any) -> ImageTree:
    return ImageTree({r.path: r for r in records}, config)


def record(
    path: str, content: str = "x", *, kind: Kind = "file", mode: int = 0o644, owner: str = "0:0"
) -> Record:
    return Record(path, kind, mode, content, owner)


def test_equal_trees() -> None:
    assert compare(tree(record("a"), Env=["A=1"]), tree(record("a"), Env=["A=1"])) == []


def test_each_kind_is_named_with_both_sides() -> None:
    one = tree(record("content", "x"), record("gone"), record("mode"), record("owner"), record("type"))
    other = tree(
        record("content", "y"),
        record("mode", mode=0o600),
        record("new", kind="link"),
        record("owner", owner="1:0"),
        record("type", kind="dir"),
    )
    assert compare(one, other) == [
        Difference("/content", "content", "x", "y"),
        Difference("/gone", "missing", "file", ""),
        Difference("/mode", "mode", "644", "600"),
        Difference("/new", "missing", "", "link"),
        Difference("/owner", "owner", "0:0", "1:0"),
        Difference("/type", "type", "file", "dir"),
    ]
    assert str(compare(one, other)[1]) == "/gone: missing: file → none"


def test_settings_differ_by_name_and_not_by_order() -> None:
    one = tree(Env=["A=1", "B=2"], Labels={"l": "1", "io.buildah.version": "1.28"}, Cmd=["a"], User="")
    other = tree(Env=["B=2", "A=3"], Labels={"l": "1"}, Cmd=["a"], Entrypoint=["e"])
    assert compare(one, other) == [
        Difference("Entrypoint", "setting", "", "['e']"),
        Difference("Env A", "setting", "1", "3"),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Healthcheck", {"Test": ["CMD", "x"]}),
        ("OnBuild", ["RUN x"]),
        ("Shell", ["/bin/x", "-c"]),
        ("StopSignal", "SIGINT"),
        ("Volumes", {"/data": {}}),
        ("platform", "linux/arm64"),
    ],
)
def test_each_setting_of_an_image_counts(name: str, value: object) -> None:
    one = tree(**{name: value})
    other = tree(**({"platform": "linux/amd64"} if name == "platform" else {}))
    assert [each.path for each in compare(one, other)] == [name]
    assert compare(one, one) == []


def test_a_platform_that_one_side_does_not_tell_is_no_difference() -> None:
    assert compare(tree(platform="linux/amd64"), tree()) == []


def test_a_variable_keeps_its_equals_signs() -> None:
    assert settings({"Env": ["A=b=c", "EMPTY="]}) == {"Env A": "b=c", "Env EMPTY": ""}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["A"], ["A="]),
        (["A"], []),
        (["A=1", "A=2"], ["A=2"]),
        (["A=1", "A=2"], ["A=2", "A=2"]),
        (["A=2", "A=1", "A=2"], ["A=1", "A=2"]),
    ],
)
def test_variables_that_are_listed_twice_or_have_no_value_are_told(one: list[str], other: list[str]) -> None:
    """The C library takes the first of two, engines the last."""
    assert [each.path for each in compare(tree(Env=one), tree(Env=other))][:1] == ["Env"]
    assert compare(tree(Env=one), tree(Env=one)) == []
