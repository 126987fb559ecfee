"""What the C library, OpenSSL and NCCL are told by files of the system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.oci.tar_writer import Kind, Record
from reprobuild.verify.check import check_tree, is_kept
from support.trees import image


def found(path: str, text: str, kind: Kind = "file") -> list[tuple[str, str, str]]:
    whole = image(Record(path, kind, 0o644, "x"))
    kept = {**whole.kept, path: text.encode()} if is_kept(path, len(text)) else whole.kept
    own = whole.kept["opt/reprobuild/manifest.tsv"]
    checked = check_tree(replace(whole, kept=kept), "x", own)
    return [(each.path, each.kind, each.second) for each in checked.differences]


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("etc/ssl/openssl.cnf", "[evil]\nmodule = /opt/e.so\n", "module ="),
        ("etc/ssl/openssl.cnf", ".include /opt/e.cnf\n", ".include"),
        ("etc/ssl/openssl.cnf", "[x]\n dynamic_path=/opt/e.so\n", "dynamic_path="),
        ("etc/nsswitch.conf", "passwd: evil files\n", "evil"),
    ],
)
def test_a_file_that_loads_code_is_named(path: str, text: str, says: str) -> None:
    assert found(path, text) == [(f"/{path}", "runs at start", says)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/ssl/openssl.cnf", "# .include /x\n[provider_sect]\ndefault = default_sect\n"),
        (
            "etc/nsswitch.conf",
            "passwd: files systemd # evil\nhosts: files mdns4_minimal [NOTFOUND=return] dns\n",
        ),
    ],
)
def test_what_debian_ships_is_left_alone(path: str, text: str) -> None:
    assert found(path, text) == []


@pytest.mark.parametrize("path", ["etc/nccl.conf", "root/.nccl.conf"])
def test_settings_of_nccl_that_would_be_refused_as_variables(path: str) -> None:
    assert found(path, "NCCL_ALGO=Tree") == [(f"/{path}", "setting", f"/{path}")]


def test_an_etc_that_is_elsewhere_is_named() -> None:
    assert found("etc", "", "link") == [("/etc", "type", "link")]
