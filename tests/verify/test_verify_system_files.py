"""What the C library, OpenSSL and NCCL are told by files of the system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.oci.tar_writer import Kind, Record
from reprobuild.verify.check import check_tree, is_kept
from support.trees import image

INIT = "openssl_conf = a\n[a]\nproviders = b\n[b]\n"


def found(path: str, text: str, kind: Kind = "file") -> list[tuple[str, str, str]]:
    whole = image(Record(path, kind, 0o644, "x"))
    kept = {**whole.kept, path: text.encode()} if is_kept(path, len(text)) else whole.kept
    own = whole.kept["opt/reprobuild/manifest.tsv"]
    checked = check_tree(replace(whole, kept=kept), "x", own)
    return [(each.path, each.kind, each.second) for each in checked.differences]


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("etc/ssl/openssl.cnf", ".include /opt/e.cnf\n", ".include"),
        # Of libcrypto 3.0 each of these loads a library; see crypto/conf and crypto/provider_conf.c.
        ("etc/ssl/openssl.cnf", f"{INIT}x = c\n[c]\nmodule = /opt/e.so\n", "x = c"),
        ("etc/ssl/openssl.cnf", f"{INIT}evil = c\n[c]\nactivate = 1\n", "evil = c"),
        ("etc/ssl/openssl.cnf", f"{INIT}default = c\n[z]\nc::module = /opt/e.so\n", "module = /opt/e.so"),
        ("etc/ssl/openssl.cnf", f"{INIT}default = c\n[c]\na.module = /opt/e.so\n", "a.module = /opt/e.so"),
        ("etc/ssl/openssl.cnf", f"{INIT}default = c\n[c]\nmod\\\nule = /opt/e.so\n", "module = /opt/e.so"),
        (
            "etc/ssl/openssl.cnf",
            f"{INIT}default = c\n[c]\n# \\\\\nmodule = /opt/e.so\n",
            "module = /opt/e.so",
        ),
        (
            "etc/ssl/openssl.cnf",
            f"{INIT}default = c\n[c]\n# \f[d]\nmodule = /opt/e.so\n",
            "module = /opt/e.so",
        ),
        ("etc/ssl/openssl.cnf", f"{INIT}default = c\n[c]\nidentity = evil\n", "identity = evil"),
        ("etc/ssl/openssl.cnf", f"{INIT}default = c\n[z]\nb::evil = c\n", "evil = c"),
        ("etc/ssl/openssl.cnf", f"{INIT}default = c\n[z]\na::providers.2 = d\n[d]\nevil = c\n", "evil = c"),
        ("etc/ssl/openssl.cnf", f"{INIT}default = $x\n", "default = $x"),
        ("etc/ssl/openssl.cnf", "openssl_conf = a\n[a]\nengines = b\n", "engines = b"),
        ("etc/ssl/openssl.cnf", "openssl_conf = a\n[a]\nevil = b\n[b]\npath = /opt/e.so\n", "evil = b"),
        ("etc/ssl/openssl.cnf", "openssl_conf = $x\n", "openssl_conf = $x"),
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
            "etc/ssl/openssl.cnf",
            INIT
            + "default = d\n# fips = f\nlegacy = d\n[d]\nactivate = 1\n[ca]\ndir = $d\n[z]\nmodule = /x.so\n",
        ),
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


@pytest.mark.parametrize("path", ["usr/lib/locale/locale-archive", "etc/locale.alias"])
@pytest.mark.parametrize("locale", ["C.utf8", "C.UTF-8", "en_US.utf8"])
def test_another_definition_of_the_image_s_locale_is_named(path: str, locale: str) -> None:
    named = [(f"/{path}", "setting", "C.UTF-8")] if locale != "en_US.utf8" else []
    assert found(path, f"\0{locale}\0") == named


@pytest.mark.parametrize("folder", ["C.UTF-8", "C.utf-8", "c.utf8"])
def test_another_folder_of_the_image_s_locale_is_named(folder: str) -> None:
    path = f"usr/lib/locale/{folder}/LC_NUMERIC"
    assert found(path, "x") == [(f"/{path}", "setting", "C.UTF-8")]


def test_a_folder_of_another_locale_is_not() -> None:
    assert found("usr/lib/locale/en_US.utf8/LC_NUMERIC", "x") == []


def test_nccl_s_settings_of_a_user_are_where_the_list_of_users_says() -> None:
    whole = image(Record("data/home/.nccl.conf", "file", 0o644, "x"))
    users = b"root:x:0:0:root:/data/home:/bin/sh\n"
    kept = {**whole.kept, "etc/passwd": users}
    checked = check_tree(replace(whole, kept=kept), "x", whole.kept["opt/reprobuild/manifest.tsv"])
    assert ("/data/home/.nccl.conf", "setting") in [(each.path, each.kind) for each in checked.differences]


def test_an_etc_that_is_elsewhere_is_named() -> None:
    assert found("etc", "", "link") == [("/etc", "type", "link")]
