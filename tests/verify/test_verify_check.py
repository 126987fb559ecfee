from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reprobuild.errors import ImageError
from reprobuild.lock.own_files import OwnFiles
from reprobuild.lock.packages import CondaPackage
from reprobuild.oci.file_tree import ImageTree
from reprobuild.oci.tar_writer import Record
from reprobuild.render.image_config import image_config
from reprobuild.render.own_files import image_files
from reprobuild.request.model import Conda
from reprobuild.verify.check import check_tree
from reprobuild.verify.compare import Difference
from support.locks import LOCK, OTHER_FILES
from support.trees import CUDA, SITE, image, sha


def differences(tree: ImageTree, where: str, parent: bytes | None = None) -> list[Difference]:
    return check_tree(tree, where, parent).differences


def test_an_image_as_it_was_built_and_one_with_more_in_it() -> None:
    assert differences(image(), "x") == []
    more = [Record(f"{SITE}/humanise/a.py", "file", 0o644, "x"), Record("app/train.py", "file", 0o600, "y")]
    path = "/app/bin:" + image_config(LOCK).env["PATH"]
    with_more = image(*more, env={"PATH": path, "MINE": "1"})
    assert differences(with_more, "x") == []
    assert check_tree(with_more, "x").added == [f"{SITE}/humanise/a.py"]
    assert check_tree(image(), "x").added == []


@pytest.mark.parametrize("platform", ["linux/arm64", "windows/amd64", "amd64", "", "linux/amd64"])
def test_another_platform_is_named(platform: str) -> None:
    tree = image()
    found = differences(replace(tree, config={**tree.config, "platform": platform}), "x")
    assert [(each.path, each.second) for each in found] == (
        [] if platform == LOCK.platform else [("platform", platform)]
    )


def test_an_image_of_conda_packages_as_it_was_built() -> None:
    python = CondaPackage(
        name="python",
        version="3.11.9",
        build="0",
        subdir="linux-64",
        url="https://conda.example/linux-64/python-3.11.9-0.conda",
        sha256="1" * 64,
        md5=None,
        size=5,
        depends=(),
    )
    conda = Conda(channels=("https://conda.example",), packages=("python=3.11",))
    request = replace(LOCK.request, conda=conda)
    lock = replace(LOCK, conda=[python], request=request)
    assert differences(image(lock=lock), "x") == []
    named = {each.path for each in differences(image(lock=lock, env={"CONDA_PREFIX": "/opt/other"}), "x")}
    assert named == {"Env CONDA_PREFIX"}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Record(f"{SITE}/torch/a.py", "file", 0o644, "z"), ("content", "a", "z")),
        (Record(f"{SITE}/torch/a.py", "file", 0o600, "a"), ("mode", "644", "600")),
        (Record(f"{SITE}/torch/a.py", "link", 0o777, "b.py"), ("type", "file", "link")),
        (Record(f"{SITE}/torch/a.py", "other", 0, ""), ("missing", "file", "")),
    ],
)
def test_each_changed_file_is_named(record: Record, expected: tuple[str, str, str]) -> None:
    assert differences(image(record), "x") == [Difference(f"/{record.path}", *expected)]


def test_a_manifest_that_was_rewritten_is_named_and_not_believed() -> None:
    """The derived image changed a file, and the line for it."""
    base = image().kept["opt/reprobuild/manifest.tsv"]
    path = f"{SITE}/torch/a.py"
    line = f"file\t644\ta\t/{path}".encode()
    assert line in base
    rewritten = base.replace(line, line.replace(b"\ta\t", b"\tz\t"))
    kept = {**image().kept, "opt/reprobuild/manifest.tsv": rewritten}
    derived = image(Record(path, "file", 0o644, "z"), kept=kept)
    assert differences(derived, "x") == []
    assert differences(derived, "x", base) == [
        Difference("/opt/reprobuild/manifest.tsv", "content", sha(base), sha(rewritten)),
        Difference(f"/{path}", "content", "a", "z"),
    ]
    assert differences(image(), "x", base) == []


def test_pip_may_replace_itself() -> None:
    gone = Record(f"{SITE}/pip/b.py", "other", 0, "")
    assert differences(image(gone, Record("opt/venv/bin/pip3", "file", 0o755, "new")), "x") == []


@pytest.mark.parametrize(
    ("name", "value", "locked"),
    [
        ("OMP_NUM_THREADS", "2", "1"),
        ("PYTHONHASHSEED", None, "0"),
        ("PIP_CONSTRAINT", None, "/opt/reprobuild/constraints.txt"),
        ("TORCHINDUCTOR_USE_FAST_MATH", "1", ""),
        ("REPROBUILD_DETERMINISM", "off", ""),
        ("PATH", "/usr/bin", "/opt/venv/bin:…"),
    ],
)
def test_each_changed_setting_is_named(name: str, value: str | None, locked: str) -> None:
    expected = Difference(f"Env {name}", "setting", locked, value or "")
    assert differences(image(env={name: value}), "x") == [expected]


@pytest.mark.parametrize(
    "name", ["libcudart.so.12", "libcudart-0c1f.so.12.1", "libcudnn_ops.so.9", "libnccl.so.2"]
)
def test_a_second_copy_of_a_cuda_library_is_named(name: str) -> None:
    [found] = differences(image(Record(f"usr/local/lib/{name}", "file", 0o644, "x")), "x")
    assert (found.path, found.kind) == (f"/usr/local/lib/{name}", "second copy")
    assert found.first == (f"/{CUDA}" if "cudart" in name else "")


def test_a_link_to_the_one_copy_is_none() -> None:
    assert differences(image(Record("usr/lib/libcudart.so.12", "link", 0o777, f"/{CUDA}")), "x") == []


@pytest.mark.parametrize("path", sorted(image_files(LOCK).keys() - {"/opt/reprobuild/pylock.toml"}))
def test_each_of_reprobuild_s_own_files_is_held_against_this_reprobuild(path: str) -> None:
    """A derived image's own self-test could print the last good report."""
    content, mode = image_files(LOCK)[path]
    base = image().kept["opt/reprobuild/manifest.tsv"]
    for record, kind in (
        (Record(path[1:], "file", mode, "z"), "content"),
        (Record(path[1:], "file", 0o755, sha(content)), "mode"),
        (Record(path[1:], "link", 0o777, "/app/mine"), "type"),
        (Record(path[1:], "other", 0, ""), "missing"),
    ):
        for known in (None, base):
            [found] = differences(image(record), "x", known)
            assert (found.path, found.kind) == (path, kind)


def test_a_file_of_another_release_is_told_from_one_that_was_changed() -> None:
    lock = replace(LOCK, own_files=OTHER_FILES)
    golden, program = (f"opt/reprobuild/{name}" for name in ("golden.json", "selftest.py"))
    assert (
        differences(image(lock=lock), "x") == []
    )  # the lock is the image's own word, and harms nothing here
    theirs = [Record(path, "file", 0o644, OTHER_FILES.sha256[path[15:]]) for path in (golden, program)]
    assert [(d.path, d.kind) for d in differences(image(*theirs, lock=lock), "x")] == [
        (f"/{golden}", "release"),
        (f"/{program}", "release"),
    ]
    changed = [theirs[0], Record(program, "file", 0o644, "z")]
    assert [d.kind for d in differences(image(*changed, lock=lock), "x")] == ["release", "content"]
    # What its lock says of a file that is not reprobuild's is no excuse for it.
    other = replace(LOCK, own_files=OwnFiles(version="0.0.9", sha256={"a.py": "2" * 64}))
    (found,) = differences(image(Record(f"{SITE}/torch/a.py", "file", 0o644, "2" * 64), lock=other), "x")
    assert found.kind == "content"


@pytest.mark.parametrize("path", ["opt/reprobuild/more.py", "opt/reprobuild/lib/golden.json"])
def test_what_reprobuild_did_not_put_into_its_folder_is_named(path: str) -> None:
    """Also where a base image's own manifest names it."""
    line = f"file\t644\tx\t/{path}\n".encode()
    manifest = image().kept["opt/reprobuild/manifest.tsv"] + line
    for known in (None, manifest):
        [found] = differences(image(Record(path, "file", 0o644, "x")), "x", known)[-1:]
        assert found == Difference(f"/{path}", "added", "", f"/{path}")


def test_a_locked_file_with_capabilities_is_named() -> None:
    """The loader ignores LD_LIBRARY_PATH and more in a Python with some."""
    capable = Record(f"{SITE}/torch/a.py", "file", 0o644, "a", attributes="security.capability=01\nuser.a=00")
    expected = Difference(f"/{SITE}/torch/a.py", "attributes", "", "security.capability=01")
    assert differences(image(capable), "x") == [expected]


def without(path: str) -> dict[str, bytes]:
    return {name: content for name, content in image().kept.items() if name != path}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kept": {}}, "not an image made by reprobuild: it has no /opt/reprobuild/pylock.toml"),
        ({"config": {}}, "not an image made by reprobuild: it has no label dev.reprobuild.lock"),
        ({"kept": without("opt/reprobuild/manifest.tsv")}, "manifest.tsv is missing"),
        ({"kept": {**image().kept, "opt/reprobuild/manifest.tsv": b"rubbish"}}, "manifest.tsv is damaged"),
        ({"kept": {**image().kept, "opt/reprobuild/pylock.toml": b"rubbish"}}, "not valid TOML"),
        ({"config": {"Labels": {"dev.reprobuild.lock": "sha256:0"}}}, "not the lock that the image's label"),
    ],
)
def test_an_image_that_cannot_be_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ImageError, match=message.replace(".", r"\.")):
        differences(image(**change), "team/x:1")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("torch-9.dist-info/METADATA", True),
        ("Torch-9.egg-info/PKG-INFO", True),
        ("torch-9-py3.11.egg-info", True),
        ("torch-9.egg-info", True),
        ("torchvision-9.dist-info/METADATA", False),
        ("pip-99.dist-info/METADATA", False),
        ("torch/_vendor/torch-9.dist-info/METADATA", False),
    ],
)
def test_other_metadata_of_a_locked_package_is_named(name: str, named: bool) -> None:
    found = differences(image(Record(f"{SITE}/{name}", "file", 0o644, "x")), "x")
    assert [(each.path, each.kind) for each in found] == (
        [(f"/{SITE}/{name}", "second copy")] if named else []
    )
