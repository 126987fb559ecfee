"""Two locks → what changed and what that can do."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from reprobuild.errors import LockError
from reprobuild.lock.base_image import BaseImage, BaseLayer
from reprobuild.lock.diff import (
    Change,
    diff,
    diff_all,
    meaning_of_conda,
    meaning_of_debian,
    meaning_of_python,
)
from reprobuild.lock.model import Lock
from reprobuild.lock.own_files import OwnFiles
from reprobuild.lock.packages import BuildFiles, CondaPackage, SourceArchive
from reprobuild.lock.reader import parse_half
from reprobuild.lock.standalone_python import StandalonePython
from reprobuild.request.image_user import ImageUser
from reprobuild.request.model import Conda
from support.locks import LOCK, OTHER_FILES, SMALL
from support.resolving import debian


def moved(name: str, version: str, *, sha256: str = "1" * 64, size: int = 5) -> list[Change]:
    """The changes when one Python package of the golden lock moves."""
    python = [
        replace(p, version=version, wheel=replace(p.wheel, sha256=sha256, size=size)) if p.name == name else p
        for p in LOCK.python
    ]
    return list(diff(LOCK, replace(LOCK, python=python)))


def conda(name: str, version: str, *, build: str = "0", size: int = 5) -> CondaPackage:
    url = f"https://conda.example/forge/linux-64/{name}-{version}-{build}.conda"
    return CondaPackage(
        name=name, version=version, build=build, subdir="linux-64", url=url, sha256="2" * 64, md5=None,
        size=size, depends=(),
    )  # fmt: skip


def test_equal_locks_have_no_changes() -> None:
    assert diff(LOCK, LOCK) == ()


def test_a_moved_package_has_both_versions_and_the_size() -> None:
    [change] = moved("jinja2", "3.1.5", size=133271 + 1000)
    assert (change.kind, change.name, change.old, change.new) == ("python", "jinja2", "3.1.4", "3.1.5")
    assert (change.size, change.meaning) == (1000, "behaviour")


def test_other_bytes_of_the_same_version_are_a_change_that_says_so() -> None:
    [change] = moved("torch", "2.4.1")
    assert change.old == change.new
    assert change.meaning == "numbers"
    assert "other bytes" in change.why


@pytest.mark.parametrize("name", ["apt", "dpkg", "mount", "passwd", "bsdutils"])
def test_other_bytes_of_a_tool_of_the_system_can_move_behaviour(name: str) -> None:
    old = replace(LOCK, debian=[debian(name, "1")])
    [change] = diff(old, replace(old, debian=[replace(debian(name, "1"), sha256="2" * 64)]))
    assert (change.meaning, change.old, change.new) == ("behaviour", "1", "1")
    [change] = diff(old, replace(old, debian=[replace(debian(name, "2"), sha256="2" * 64)]))
    assert change.meaning == "nothing"


def test_other_bytes_of_pip_can_move_behaviour() -> None:
    [pip] = [p for p in LOCK.python if p.name == "pip"]
    [change] = moved("pip", pip.version)
    assert change.meaning == "behaviour"


@pytest.mark.parametrize("name", ["apt", "evil-doc", "gpgevil", "manpages-evil"])
def test_an_added_package_can_move_behaviour(name: str) -> None:
    [change] = diff(LOCK, replace(LOCK, debian=[*LOCK.debian, debian(name, "1")]))
    assert (change.meaning, change.old) == ("behaviour", None)


def test_a_name_that_only_ends_like_a_document_can_move_behaviour() -> None:
    assert {meaning_of_debian(name)[0] for name in ("evil-doc", "gpgevil", "manpages-evil")} == {"behaviour"}


def test_a_platform_that_comes_or_goes_is_told() -> None:
    arm = replace(LOCK, platform="linux/arm64")
    for old, new in (([LOCK], [LOCK, arm]), ([LOCK, arm], [LOCK])):
        [change] = diff_all(old, new)
        assert (change.kind, change.name, change.meaning) == ("request", "platforms", "behaviour")
        assert {change.old, change.new} == {"linux/amd64", "linux/amd64, linux/arm64"}
    assert diff_all([LOCK, arm], [LOCK, arm]) == ()


def test_another_host_of_the_same_bytes_is_told_as_what_it_is() -> None:
    python = [replace(p, wheel=replace(p.wheel, url="https://other.example/x.whl")) for p in LOCK.python]
    (change,) = diff(LOCK, replace(LOCK, python=python))
    assert (change.name, change.new, change.meaning) == ("addresses", "https://other.example", "nothing")


PIP = next(p for p in LOCK.python if p.name == "pip")


def of_pip(**wheel: Any) -> list[Change]:
    """The changes when only what the lock says of pip's wheel differs."""
    pip = replace(PIP, wheel=replace(PIP.wheel, **wheel))
    return list(diff(LOCK, replace(LOCK, python=[pip if p is PIP else p for p in LOCK.python])))


def test_what_differs_about_the_same_bytes_is_listed() -> None:
    cases: dict[str, dict[str, Any]] = {
        "url": {"url": PIP.wheel.url + "?a"},
        "size": {"size": PIP.wheel.size + 1},
        "upload-time": {"uploaded": datetime(2020, 1, 1, tzinfo=UTC)},
    }
    for key, wheel in cases.items():
        [change] = of_pip(**wheel)
        assert (change.kind, change.name, change.meaning) == ("python", f"pip: {key}", "nothing")
        assert change.old != change.new


def test_another_file_of_this_machine_is_listed_where_one_was_before() -> None:
    def at(url: str) -> Lock:
        pip = replace(PIP, wheel=replace(PIP.wheel, url=url))
        return replace(LOCK, python=[pip if p is PIP else p for p in LOCK.python])

    [change] = diff(at("file:///srv/pip.whl"), at("file:///etc/pip.whl"))
    assert (change.name, change.new) == ("pip: url", "file:///etc/pip.whl")


@pytest.mark.parametrize("name", ["debian", "conda"])
def test_what_differs_about_the_same_bytes_of_other_packages_is_listed(name: str) -> None:
    old = replace(LOCK, debian=[debian("apt", "1")], conda=[conda("pip", "24")])
    new = (
        replace(old, debian=[replace(old.debian[0], path="pool/main/e/evil/apt_1_amd64.deb")])
        if name == "debian"
        else replace(
            old, conda=[replace(old.conda[0], url="https://conda.example/evil/noarch/pip-24-0.conda")]
        )
    )
    [change] = diff(old, new)
    assert (change.kind, change.meaning) == (name, "nothing")
    assert "evil" in str(change.new)


def test_a_newer_pip_from_a_host_of_the_old_lock_cannot_if_it_is_pip() -> None:
    [change] = moved("pip", "99.0")
    assert (change.meaning, "if it is what its name says" in change.why) == ("nothing", True)


def test_a_newer_pip_from_another_host_can_move_behaviour_and_the_host_is_named() -> None:
    for url in ("https://evil.example/pip.whl", "file:///etc/pip.whl"):
        wheel = replace(PIP.wheel, url=url, sha256="1" * 64)
        python = [replace(p, version="99.0", wheel=wheel) if p is PIP else p for p in LOCK.python]
        [change] = [c for c in diff(LOCK, replace(LOCK, python=python)) if c.kind == "python"]
        assert (change.meaning, url.rpartition("/")[0] in change.why) == ("behaviour", True)


def test_a_newer_pip_of_another_channel_can_move_behaviour() -> None:
    old = replace(LOCK, conda=[conda("pip", "24")])
    url = "https://conda.example/evil/linux-64/pip-25-0.conda"
    pip = replace(conda("pip", "25"), url=url, sha256="3" * 64)
    [change] = diff(old, replace(old, conda=[pip]))
    assert (change.meaning, "https://conda.example/evil" in change.why) == ("behaviour", True)


@pytest.mark.parametrize(
    ("archive", "folder", "meaning"),
    [
        ("debian", "pool/main/a/apt", "nothing"),
        ("debian-security", "pool/updates/main/a/apt", "nothing"),
        ("debian", "pool/main/e/evil", "behaviour"),
        ("evil", "pool/main/a/apt", "behaviour"),
    ],
)
def test_a_newer_tool_of_the_system_by_its_place(archive: str, folder: str, meaning: str) -> None:
    old = replace(LOCK, debian=[debian("apt", "2.6.2"), debian("git", "1", "debian-security")])
    apt = replace(debian("apt", "9.9", archive), path=f"{folder}/apt_9.9_amd64.deb", sha256="2" * 64)
    [change] = diff(old, replace(old, debian=[apt, old.debian[1]]))
    assert change.meaning == meaning
    assert (f"{archive}:{folder}" in change.why) == (meaning != "nothing")


def test_the_whole_hash_of_a_file_of_reprobuild_is_compared() -> None:
    one, other = (
        replace(LOCK, own_files=OwnFiles(version="1", sha256={"reprobuild_hook.py": "2" * 12 + end * 52}))
        for end in "34"
    )
    [change] = diff(one, other)
    assert (change.name, change.meaning) == ("reprobuild_hook.py", "numbers")
    assert change.old != change.new


def test_other_files_of_reprobuild_are_told_by_what_they_do() -> None:
    files = OwnFiles(version="0.0.9", sha256={**OTHER_FILES.sha256, "reprobuild_hook.py": "2" * 64})
    changes = diff(replace(LOCK, own_files=OTHER_FILES), replace(LOCK, own_files=files))
    assert [(c.kind, c.name, c.new, c.meaning) for c in changes] == [
        ("reprobuild", "reprobuild_hook.py", "2" * 12, "numbers")
    ]
    changes = diff(LOCK, replace(LOCK, own_files=OTHER_FILES))
    assert [(c.name, c.meaning) for c in changes] == [
        ("golden.json", "nothing"),
        ("selftest.py", "nothing"),
        ("version", "nothing"),
    ]


FROM = f"sha256:{'4' * 64}"
OCI_LAYER = "application/vnd.oci.image.layer.v1"
BASE = BaseImage(
    image="images.example/team/base:1", index=f"sha256:{'3' * 64}", manifests={"linux/amd64": FROM},
    config=f"sha256:{'5' * 64}", created="2024-01-02T03:04:05Z", system="Debian GNU/Linux 12 (bookworm)",
    suite="bookworm", glibc="2.36", python="/usr/bin/python3.11", python_version="3.11.2",
    cuda=["/usr/lib/libcudart.so"], env={"A": "1"},
    layers=[BaseLayer(digest=FROM, size=5, media_type=f"{OCI_LAYER}.tar", diff_id=FROM)],
)  # fmt: skip
STANDALONE = StandalonePython(
    version="3.12.8", url="https://files.example/python-3.12.8.tar.gz", sha256="6" * 64, size=5
)
JINJA, SYMPY = (p for p in LOCK.python if p.name in ("jinja2", "sympy"))
SOURCE = SourceArchive(
    filename="jinja2-3.1.4.tar.gz", url="https://index.example/jinja2-3.1.4.tar.gz", sha256="7" * 64, size=5,
    requires=(SYMPY.pin,),
)  # fmt: skip
BUILT = replace(JINJA, source=SOURCE, wheel=replace(JINJA.wheel, url="", uploaded=None))
TOOLS = BuildFiles(python=[SYMPY], debian=[debian("cmake", "3.25")])
WHOLE = (
    replace(SMALL, python=[*SMALL.python, BUILT], build=TOOLS, gpu_targets=["sm_80"]),
    replace(SMALL, base=BASE, request=replace(SMALL.request, base_image=BASE.image)),
    replace(SMALL, standalone=STANDALONE, request=replace(SMALL.request, python="3.12")),
    replace(
        SMALL,
        conda=[conda("python", "3.11.9")],
        request=replace(SMALL.request, conda=Conda(channels=("forge",), packages=("six",))),
    ),
)


def leaves(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """The paths of all single values of a table."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, each in items:
        if isinstance(each, Mapping | list):
            yield from leaves(each, *path, key)
        else:
            yield (*path, key)


def other_values(value: object) -> Sequence[object]:
    """Values of which one may be valid in the place of another."""
    if not isinstance(value, str):
        return [value + 1 if isinstance(value, int) else value]
    digit = "1" if value[-1:] == "2" else "2"
    return [value[:-1] + digit, value + "2", value.replace("/", "/z", 1), value.replace(".", "z.", 1)]


def test_every_value_that_a_lock_can_have_is_compared() -> None:
    tried: set[object] = set()
    for whole in WHOLE:
        table = tomllib.loads(whole.dump())
        assert parse_half(table, "").digest == whole.digest
        for *path, last in leaves(table):
            part = path[2] if path[:2] == ["tool", "reprobuild"] and path[2:] else path[0] if path else last
            inner, value = reduce(getitem, path, table), reduce(getitem, [*path, last], table)
            for other in other_values(value):
                inner[last] = other
                with suppress(LockError):
                    lock = parse_half(table, "")
                    if lock.digest != whole.digest:
                        tried.add(part)
                        assert diff(whole, lock), (path, last, other)
                        assert diff(lock, whole), (path, last, other)
            inner[last] = value
            table["tool"]["reprobuild"]["request-digest"] = whole.request.digest
    assert tried >= {"packages", "request", "variables", "own-files", "architectures", "base", "conda"}
    assert tried >= {"standalone-python", "debian", "build"}


def test_whose_file_is_taken_can_move_numbers_and_whom_programs_run_as_behaviour() -> None:
    request = replace(LOCK.request, file_priority=("six",), user=ImageUser("a", 1000))
    assert [(c.name, c.meaning) for c in diff(LOCK, replace(LOCK, request=request))] == [
        ("file-priority", "numbers"),
        ("user", "behaviour"),
    ]


def test_a_build_tool_is_told_by_its_version_or_else_by_what_differs() -> None:
    whole = WHOLE[0]

    def changed(**keys: Any) -> Change:
        [change] = diff(whole, replace(whole, build=replace(TOOLS, python=[replace(SYMPY, **keys)])))
        return change

    newer, other = changed(version="99"), changed(wheel=replace(SYMPY.wheel, sha256="7" * 64))
    assert (newer.name, newer.old, newer.new) == ("built-with.sympy", SYMPY.version, "99")
    assert newer.meaning == other.meaning == "nothing"
    assert other.new is not None
    assert "7" * 64 in other.new


def test_another_epoch_is_told() -> None:
    (change,) = diff(LOCK, replace(LOCK, epoch=LOCK.epoch + 1))
    assert change.name == "epoch"


def test_conda_packages() -> None:
    old = replace(LOCK, conda=[conda("libcublas", "12.1"), conda("ca-certificates", "1"), conda("pip", "24")])
    torch = conda("pytorch", "2.4.1", build="cuda120_0", size=100)
    new = replace(old, conda=[replace(p, version="9", sha256="3" * 64) for p in old.conda] + [torch])
    found = {c.name: (c.kind, c.old, c.new, c.size, c.meaning) for c in diff(old, new)}
    assert found == {
        "libcublas": ("conda", "12.1 0", "9 0", 0, "numbers"),
        "pytorch": ("conda", None, "2.4.1 cuda120_0", 100, "numbers"),
        "ca-certificates": ("conda", "1 0", "9 0", 0, "behaviour"),
        "pip": ("conda", "24 0", "9 0", 0, "nothing"),
    }
    rebuilt = replace(new, conda=[p if p != torch else replace(p, build="cpu_0") for p in new.conda])
    [change] = diff(new, rebuilt)
    assert (change.old, change.new) == ("2.4.1 cuda120_0", "2.4.1 cpu_0")


def test_packages_that_come_and_go() -> None:
    without = replace(LOCK, python=[p for p in LOCK.python if p.name != "sympy"])
    [gone] = diff(LOCK, without)
    [come] = diff(without, LOCK)
    assert gone.new is None
    assert come.old is None
    assert gone.size == -come.size < 0


def test_the_gravest_comes_first() -> None:
    debs = [replace(p, version="9", sha256="2" * 64) for p in LOCK.debian]
    old = replace(LOCK, debian=[*LOCK.debian, debian("apt", "2.6.1")])
    apt = replace(debian("apt", "2.6.2"), sha256="2" * 64)
    new = replace(LOCK, debian=[*debs, apt, debian("git", "1")], variables={"A": "1"})
    meanings = [change.meaning for change in diff(old, new)]
    assert meanings == sorted(meanings, key=["numbers", "behaviour", "nothing"].index)
    assert set(meanings) == {"numbers", "behaviour", "nothing"}


def test_what_the_request_and_the_variables_say() -> None:
    new = replace(
        LOCK,
        request=replace(LOCK.request, threads=4, name="other"),
        variables={**LOCK.variables, "OMP_NUM_THREADS": "4"},
    )
    found = {(c.kind, c.name): (c.old, c.new, c.meaning) for c in diff(LOCK, new)}
    assert found == {
        ("request", "determinism.threads"): ("1", "4", "numbers"),
        ("request", "name"): ("torch-cu121", "other", "nothing"),
        ("variable", "OMP_NUM_THREADS"): ("1", "4", "numbers"),
    }


@pytest.mark.parametrize(
    ("meaning", "names"),
    [
        ("numbers", "torch torchvision triton numpy scipy nvidia-cublas-cu12 cuda-toolkit mkl intel-openmp"),
        ("behaviour", "jinja2 requests transformers numpydoc"),
        ("nothing", "pip"),
    ],
)
def test_meaning_of_python_packages(meaning: str, names: str) -> None:
    for name in names.split():
        assert meaning_of_python(name)[0] == meaning, name


@pytest.mark.parametrize(
    ("meaning", "names"),
    [
        (
            "numbers",
            "pytorch libtorch pytorch-gpu numpy python libblas openblas mkl triton cuda-version nccl",
        ),
        ("numbers", "cuda-cudart cudatoolkit libcudnn cudnn libnvjitlink libgcc libgcc-ng libstdcxx libgomp"),
        ("numbers", "llvm-openmp _openmp_mutex"),
        ("behaviour", "openssl ca-certificates tzdata jinja2 libzlib readline"),
        ("nothing", "pip"),
    ],
)
def test_meaning_of_conda_packages(meaning: str, names: str) -> None:
    for name in names.split():
        assert meaning_of_conda(name)[0] == meaning, name


@pytest.mark.parametrize(
    ("meaning", "names"),
    [
        (
            "numbers",
            "libc6 libc-bin libgcc-s1 libstdc++6 libgomp1 gcc-12 g++ libopenblas0 python3.11 libblas3",
        ),
        ("behaviour", "libssl3 git zlib1g tzdata ca-certificates coreutils libgcrypt20"),
        ("nothing", "apt dpkg passwd mount libapt-pkg6.0 debian-archive-keyring"),
    ],
)
def test_meaning_of_debian_packages(meaning: str, names: str) -> None:
    for name in names.split():
        assert meaning_of_debian(name)[0] == meaning, name
