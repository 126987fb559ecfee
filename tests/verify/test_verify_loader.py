"""What the dynamic linker would take in place of the lock's libraries."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace

import pytest

from reprobuild.layers.image_documents import file_manifest
from reprobuild.oci.tar_writer import Record
from reprobuild.verify.check import check_tree, is_kept
from support.trees import SITE, image, sha

TORCH = f"{SITE}/torch/lib/libtorch.so"
ZLIB = "usr/lib/x86_64-linux-gnu/libz.so.1.2"
LOCKED = [
    Record(TORCH, "file", 0o644, "t"),
    Record(ZLIB, "file", 0o644, "z"),
    Record("usr/lib/x86_64-linux-gnu/libz.so.1", "link", 0o777, "libz.so.1.2"),
    Record("usr/lib/x86_64-linux-gnu/libblas.so.3", "link", 0o777, "/etc/alternatives/blas"),
    Record("usr/lib", "dir", 0o755, "-"),
]


def cache(entries: Mapping[str, str], *, old: bool = False) -> bytes:
    """A cache of the linker, as ldconfig writes it."""
    head = b"ld.so-1.7.0\0" + struct.pack("<I", 0) if old else b""
    strings, places = b"", []
    start = 48 + 24 * len(entries)
    for name, path in entries.items():
        places.append((start + len(strings), start + len(strings) + len(name) + 1))
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    table = b"".join(struct.pack("<iIIIQ", 0x303, key, value, 0, 0) for key, value in places)
    return (
        head + b"glibc-ld.so.cache1.1" + struct.pack("<II20x", len(entries), len(strings)) + table + strings
    )


def found(*more: Record, written: bytes | None = None, **env: str) -> list[tuple[str, str]]:
    records = [*more, *([] if written is None else [Record("etc/ld.so.cache", "file", 0o644, "c")])]
    whole = image(*LOCKED, *records, env=env)
    kept = {**whole.kept, **({} if written is None else {"etc/ld.so.cache": written})}
    own = whole.kept["opt/reprobuild/manifest.tsv"] + file_manifest(LOCKED)
    tree = replace(whole, kept={**kept, "opt/reprobuild/manifest.tsv": own})
    return [(each.path, each.kind) for each in check_tree(tree, "x", own).differences]


@pytest.mark.parametrize("old", [False, True])
def test_a_cache_that_leads_a_locked_name_elsewhere(old: bool) -> None:
    assert is_kept("etc/ld.so.cache", 1)
    good = {"libz.so.1": "/lib/x86_64-linux-gnu/libz.so.1", "libmine.so": "/opt/mine/libmine.so"}
    merged = Record("lib", "link", 0o777, "usr/lib")
    assert found(merged, written=cache(good, old=old)) == []
    bad = cache({**good, "libz.so.1": "/opt/mine/libz.so.1"}, old=old)
    other = Record("opt/mine/libz.so.1", "file", 0o644, "x")
    assert found(merged, other, written=bad) == [("/etc/ld.so.cache", "shadows")]
    # An entry whose file is not there is passed over.
    assert found(merged, written=bad) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 99, cache({"a": "b"})[:60], cache({"a": "b"})[:-1], b"glibc-ld.so.cache1.1\xff\xff\xff\xff"],
)
def test_a_cache_that_cannot_be_read_is_named(data: bytes) -> None:
    assert found(written=data) == [("/etc/ld.so.cache", "runs at start")]


@pytest.mark.parametrize(
    "path",
    [
        f"{SITE}/torch/lib/glibc-hwcaps/x86-64-v2/libtorch.so",
        f"{SITE}/torch/lib/tls/haswell/libtorch.so",
        "usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libz.so.1",
        "usr/lib/libz.so.1",
    ],
)
def test_a_locked_name_in_a_folder_that_is_searched(path: str) -> None:
    assert found(Record(path, "file", 0o644, "x")) == [(f"/{path}", "shadows")]
    assert (
        found(Record(path.replace("libz", "libmine").replace("libtorch", "libmy"), "file", 0o644, "x")) == []
    )


def test_a_package_of_debian_s_does_not_replace_a_library_beside_those_that_need_it() -> None:
    """The compiler's libgomp beside PyTorch's: each is found by the RUNPATH of what needs it."""
    path = "usr/lib/x86_64-linux-gnu/libtorch.so"
    assert found(Record(path, "file", 0o644, "x"), written=cache({"libtorch.so": f"/{path}"})) == []
    other = Record("opt/mine/libtorch.so", "file", 0o644, "x")
    assert found(other, written=cache({"libtorch.so": f"/{other.path}"})) == [("/etc/ld.so.cache", "shadows")]


@pytest.mark.parametrize("folders", ["/none;/opt/mine", "/opt/$LIB", "$ORIGIN/x"])
def test_folders_as_the_linker_reads_them(folders: str) -> None:
    mine = Record("opt/mine/libtorch.so", "file", 0o644, "x")
    assert found(mine, LD_LIBRARY_PATH=folders) != []


def test_a_relative_path_in_the_cache_is_named() -> None:
    assert found(written=cache({"libz.so.1": "mine/libz.so.1"})) == [("/etc/ld.so.cache", "runs at start")]


def test_a_table_of_the_old_format_hides_nothing() -> None:
    """glibc knows by the number of its entries where the new table is; the magic may stand in the old one."""
    evil = cache({"libz.so.1": "/opt/mine/libz.so.1"})
    good = cache({"a": "b"})
    good += b"\0" * (-len(good) % 24)
    old = b"ld.so-1.7.0".ljust(12, b"\0") + struct.pack("<I", len(good) // 12) + good
    mine = Record("opt/mine/libz.so.1", "file", 0o644, "x")
    assert found(mine, written=old + evil) == [("/etc/ld.so.cache", "shadows")]


def test_links_are_followed() -> None:
    hwcaps = Record(f"{SITE}/torch/lib/glibc-hwcaps", "link", 0o777, "/opt/mine")
    assert found(hwcaps) == [(f"/{hwcaps.path}", "shadows")]
    other = Record("opt/mine/libblas.so.3", "file", 0o644, "x")
    alternative = Record("etc/alternatives/blas", "link", 0o777, "/opt/mine/libblas.so.3")
    assert found(alternative, other) == [("/usr/lib/x86_64-linux-gnu/libblas.so.3", "shadows")]
    assert found(Record("lib", "link", 0o777, "/opt/mine")) == [("/lib", "shadows")]
    path = "opt/mine/libz.so.1"
    assert found(
        Record("app", "link", 0o777, "opt/mine"), Record(path, "file", 0o644, "x"), LD_LIBRARY_PATH="/app"
    ) == [(f"/{path}", "shadows")]


def test_the_name_that_a_compiler_asks_for_may_lead_to_the_locked_library() -> None:
    assert found(Record("usr/lib/x86_64-linux-gnu/libz.so", "link", 0o777, "libz.so.1.2")) == []


def configured(texts: Mapping[str, str], *more: Record) -> list[tuple[str, str]]:
    """What `check` says of an image with files of ldconfig's; a text of ``-> PATH`` is a link."""
    links = {path: text[3:] for path, text in texts.items() if text.startswith("-> ")}
    files = [
        Record(path, "link", 0o777, links[path]) if path in links else Record(path, "file", 0o644, "x")
        for path in texts
    ]
    whole = image(*LOCKED, *files, *more)
    kept = {
        path: text.encode() for path, text in texts.items() if is_kept(path, len(text)) and path not in links
    }
    own = whole.kept["opt/reprobuild/manifest.tsv"] + file_manifest(LOCKED)
    tree = replace(whole, kept={**whole.kept, **kept, "opt/reprobuild/manifest.tsv": own})
    return [(each.path, each.kind) for each in check_tree(tree, "x", own).differences]


INCLUDES = {"etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n"}
OTHER = Record("opt/mine/libz.so.1", "file", 0o644, "x")


@pytest.mark.parametrize(
    "texts",
    [
        {"etc/ld.so.conf": "/opt/mine\n"},
        {"etc/ld.so.conf": "# x\n/opt/mine # y\n"},
        {**INCLUDES, "etc/ld.so.conf.d/mine.conf": "/opt/mine\n"},
        {"etc/ld.so.conf": "include ld.so.conf.more\n", "etc/ld.so.conf.more": "/opt/mine"},
    ],
)
def test_a_locked_name_in_a_folder_of_ldconfig_s(texts: Mapping[str, str]) -> None:
    assert configured(texts, OTHER) == [("/opt/mine/libz.so.1", "shadows")]


@pytest.mark.parametrize(
    ("texts", "path"),
    [
        ({"etc/ld.so.conf": "include /opt/x.conf\n", "opt/x.conf": "/opt/mine\n"}, "opt/x.conf"),
        (
            {**INCLUDES, "etc/ld.so.conf.d/x.conf": "-> /opt/x.conf", "opt/x.conf": "/opt/mine\n"},
            "etc/ld.so.conf.d/x.conf",
        ),
    ],
)
def test_a_file_of_ldconfig_s_whose_text_is_not_known(texts: Mapping[str, str], path: str) -> None:
    assert configured(texts, OTHER) == [(f"/{path}", "runs at start")]


def test_folders_of_ldconfig_s_without_a_locked_name() -> None:
    texts = {**INCLUDES, "etc/ld.so.conf.d/nvidia.conf": "/usr/local/nvidia/lib\n/opt/other\n"}
    assert configured(texts, Record("opt/other/libmine.so", "file", 0o644, "x"), OTHER) == []
    loop = {"etc/ld.so.conf": "include ld.so.conf\ninclude none/*.conf\n"}
    assert configured(loop) == []


@pytest.mark.parametrize(
    "path",
    [
        *(
            "usr/lib/x86_64-linux-gnu/libnccl-tuner.so",
            "usr/lib/libnccl-net.so",
            "usr/lib/libnccl-profiler.so",
        ),
        "usr/lib/x86_64-linux-gnu/libcuda.so.1",
    ],
)
def test_what_nccl_and_cuda_load_by_name(path: str) -> None:
    assert found(Record(path, "file", 0o644, "x")) == [(f"/{path}", "runs at start")]
    assert found(Record(f"opt/mine/{path.rpartition('/')[2]}", "file", 0o644, "x")) == []
    # NVIDIA's runtime leaves an empty file in a container where it mounted the host's.
    assert found(Record(path, "file", 0o644, sha(b""))) == []
