"""Twenty things that are not as they were, each named; and what is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RepeatError
from reprobuild.host.sandbox import Bind
from reprobuild.twice.receipt.model import Code, Receipt, parse_receipt
from reprobuild.twice.receipt.replay import after, before, beside_apart, binds_of, machines_apart
from support.receipts import TRAIN, receipt, table

VALUES = {"SEED": "7", "HF_TOKEN": "secret"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_bytes(TRAIN)
    (tmp_path / "data.bin").write_bytes(b"\0ab")
    return tmp_path


def changes(project: Path, was: Receipt | None = None, **given: Any) -> list[str]:
    was = was or receipt()
    binds = [Bind(source=project, destination="/code", writable=True)]
    now: dict[str, Any] = {
        "digest": was.digest, "engine": was.engine, "lock": was.lock, "variables": VALUES, "binds": binds,
        "code": was.code,
    } | given  # fmt: skip
    return [f"{each.what}: {each.told}" for each in before(was, **now)]


def test_nothing_differs(project: Path) -> None:
    assert changes(project) == []
    assert after(receipt(), receipt()) == []
    assert beside_apart(receipt(), [Bind(source=project, destination="/code", writable=True)]) == []


OTHER_LOCK, OTHER_DIGEST = "sha256:" + "3" * 64, "sha256:" + "9" * 64
DIRTY = Code(commit="a" * 40, dirty=True, tree="f" * 64)
LATER = Code(commit="c" * 40, dirty=False, tree="b" * 64)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lock": OTHER_LOCK}, f"image: made from the lock sha256:{'2' * 64}, here from {OTHER_LOCK}"),
        ({"digest": OTHER_DIGEST}, f"image: sha256:{'1' * 64}, here {OTHER_DIGEST}"),
        ({"variables": {**VALUES, "SEED": "8"}}, "variable: SEED was '7', now '8'"),
        ({"variables": {"SEED": "7"}}, "variable: HF_TOKEN is not set, a secret whose value is not in the "),
        ({"variables": {"HF_TOKEN": "x"}}, "variable: SEED is not set"),
        ({"variables": {**VALUES, "DEBUG": "1"}}, "variable: DEBUG is set, and was not"),
        ({"code": None}, "code: it was commit aaaaaaaaaaaa of git, and is in no git here"),
        ({"code": DIRTY}, "code: files that git tracks are not as they were (commit aaaaaaaaaaaa, now "),
        ({"code": LATER}, "code: commit aaaaaaaaaaaa, now cccccccccccc, with the same files"),
    ],
)
def test_image_variables_and_code(project: Path, given: dict[str, Any], told: str) -> None:
    (found,) = changes(project, **given)
    assert found.startswith(told)


def test_another_engine_names_the_same_image_by_another_digest(project: Path) -> None:
    assert changes(project, engine="podman", digest="sha256:" + "9" * 64) == []


def appended(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"# more\n")


def a_byte(path: Path) -> None:
    path.write_bytes(TRAIN.replace(b"rand(1)", b"rand(2)"))


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (a_byte, "input: /code/train.py:2: now 'print(torch.rand(2))'"),
        (appended, "input: /code/train.py:3: now '# more'"),
        (lambda path: path.write_bytes(b""), "input: /code/train.py: ended with line 3, now with line 0"),
        (lambda path: path.write_bytes(b"import torch\n"), "input: /code/train.py:2: now ''"),
        (lambda path: path.write_bytes(b"\0" * 34), "input: /code/train.py: 34 bytes, of which some differ"),
        (Path.unlink, "input: /code/train.py: No such file or directory"),
        (linked, "input: /code/train.py"),
        (a_folder, "input: /code/train.py"),
    ],
)
def test_a_byte_of_an_input(project: Path, change: Callable[[Path], object], told: str) -> None:
    change(project / "train.py")
    (found,) = changes(project)
    assert found.startswith(told)


def test_a_receipt_that_contradicts_itself(project: Path) -> None:
    file = table()["inputs"][0]
    was = receipt(inputs=[{**file, "size": 35}])
    assert changes(project, was) == ["input: /code/train.py: the receipt contradicts itself: size or lines"]


def steps(*digests: str, label: str = "step 1 (SGD)", count: int = 2) -> list[dict[str, object]]:
    moments = [["step 0 (SGD)", digests[0] * 16], [label, digests[1] * 16]]
    return [{"process": "train.py", "count": count, "moments": moments}]


OUTPUT = table()["outputs"][0]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"steps": steps("0", "f")}, "step: step 1 (SGD) differs"),
        ({"steps": steps("0", "f", label="step 1 (Adam)")}, "step: step 1 (SGD) is now step 1 (Adam)"),
        ({"steps": steps("0", "1", count=9)}, "step: 2 steps, now 9"),
        ({"steps": []}, "step: 1 processes took steps, now 0"),
        ({"outputs": []}, "output: /code/last.pt is not written now"),
        (
            {"outputs": [OUTPUT, {**OUTPUT, "path": "/code/more"}]},
            "output: /code/more is written now, and was not",
        ),
        ({"outputs": [{**OUTPUT, "meaning": "0" * 64}]}, "output: /code/last.pt differs: 10 bytes, now 10"),
        ({"stdout": "0" * 64}, "output: standard output differs, beside times"),
        ({"status": 1}, "status: ended with status 0, now 1"),
    ],
)
def test_results(now: dict[str, object], told: str) -> None:
    assert [f"{each.what}: {each.told}" for each in after(receipt(), receipt(**now))] == [told]


def test_what_is_read_now_and_was_not_is_told_where_results_differ() -> None:
    more = [*table()["inputs"], {"path": "/code/last.pt", "size": 1, "sha256": "0" * 64}]
    assert after(receipt(), receipt(inputs=more)) == []
    found = after(receipt(), receipt(inputs=more, status=1))
    assert [each.told for each in found] == [
        "/code/last.pt is read now, and was not", "ended with status 0, now 1",
    ]  # fmt: skip
    was = receipt(notes=["what it read of /code/last.pt, which the run itself changed"])
    assert [each.what for each in after(was, receipt(inputs=more, status=1))] == ["status"]


def test_the_first_step_of_all_processes_comes_first() -> None:
    both = [*steps("0", "1"), {"process": "other", "count": 1, "moments": [["step 0 (SGD)", "5" * 16]]}]
    now = [*steps("0", "f"), {"process": "other", "count": 1, "moments": [["step 0 (SGD)", "6" * 16]]}]
    (found,) = after(receipt(steps=both), receipt(steps=now))
    assert found.told == "step 0 (SGD) of other differs"


def test_another_kind_of_machine() -> None:
    other = {"architecture": "x86_64", "processor": "B", "gpus": "H100"}
    told = [each.told for each in machines_apart(receipt(), other)]
    assert told == ["gpus unknown, here H100", "processor A, here B"]


def test_a_file_that_was_not_seen_to_be_read(project: Path) -> None:
    (project / "data.bin").write_bytes(b"\0ac")
    binds = [Bind(source=project, destination="/code", writable=True)]
    assert beside_apart(receipt(), binds) == ["/code/data.bin"]


def test_folders_are_found_from_the_project_and_lead_nowhere_else(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (project / "data").symlink_to(elsewhere)
    own = Bind(source=elsewhere, destination="/data")

    def asked(source: str | None, **given: Bind) -> list[Bind]:
        was = receipt(folders=[{"destination": "/data", "source": source, "writable": False}])
        return binds_of(was, project, {bind.destination: bind for bind in given.values()})

    assert asked(".")[0].source == project
    assert asked("data", own=own)[0].source == elsewhere
    assert asked(None, own=own)[0].source == elsewhere
    for source, message in (
        ("data", "leads out of the project"),
        (None, "-v FOLDER:/data"),
        ("no", "no such file"),
    ):
        with pytest.raises(RepeatError) as failed:
            asked(source)
        assert message in f"{failed.value} {failed.value.hint}"
    with pytest.raises(RepeatError, match="has no folder at /other"):
        asked(".", own=Bind(source=elsewhere, destination="/other"))


@pytest.mark.parametrize("name", [".env", "id_ed25519", "token"])
def test_a_file_with_a_secret_s_name_is_not_quoted(project: Path, name: str) -> None:
    """Whoever wrote the receipt chose the file, and the answer gets into a log of CI."""
    (project / name).write_text("hunter2\n")
    forged = {"path": f"/code/{name}", "size": 1 << 20, "sha256": "0" * 64, "lines": "0" * 12}
    was = parse_receipt(json.dumps(table(inputs=[forged])).encode(), "r.json")
    assert changes(project, was) == [f"input: /code/{name}: 1048576 bytes, now 8"]
