from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RepeatError
from reprobuild.host.sandbox import Bind
from reprobuild.twice.receipt import make
from reprobuild.twice.receipt.make import Asked, make_receipt, refuse_secrets, stdout_digest, without_own
from reprobuild.twice.receipt.model import parse_receipt
from reprobuild.twice.written import EMPTY_FOLDER, WrittenFile
from support.parted import run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "train.sh").write_text("python3 -m train\n")
    return folder


def asked(project: Path, **given: Any) -> Asked:
    return replace(
        Asked(
            by="run", image="a:1", digest="sha256:" + "1" * 64, engine="oci", lock="", workdir="/code",
            command=("bash", "./train.sh"), user="0:0", network=False, gpus=None, project=project,
            binds=[Bind(source=project, destination="/code", writable=True)],
            variables={"SEED": "7", "HF_TOKEN": "x"},
        ),
        **given,
    )  # fmt: skip


def test_it_names_no_secret_and_no_path_of_this_machine(project: Path, tmp_path: Path) -> None:
    elsewhere = Bind(source=tmp_path, destination="/data", writable=False)
    data = Bind(source=project / "data", destination="/own", writable=False)
    binds = [*asked(project).binds, elsewhere, data]
    found = make_receipt(asked(project, binds=binds), run(0.0), None, written=[])
    assert [folder.source for folder in found.folders] == [".", None, "data"]
    assert found.variables == {"HF_TOKEN": None, "SEED": "7"}
    assert str(tmp_path) not in found.dump().decode()
    assert parse_receipt(found.dump(), "a.json") == found


def test_the_choice_of_gpus_is_in_it_where_the_program_could_use_any(project: Path) -> None:
    found = make_receipt(asked(project, gpus="CUDA_VISIBLE_DEVICES=1"), run(0.0), None, written=[])
    assert found.gpu
    assert found.machine["chosen gpus"] == "CUDA_VISIBLE_DEVICES=1"
    without = make_receipt(asked(project), run(0.0), None, written=[])
    assert (without.gpu, without.machine.get("chosen gpus")) == (False, None)


def test_a_word_of_the_command_is_an_input(project: Path) -> None:
    found = make_receipt(asked(project), run(0.0), None, written=[])
    assert [file.path for file in found.inputs] == ["/code/train.sh"]


def test_what_was_written_outside_of_the_folders_or_is_a_secret_is_left_out(project: Path) -> None:
    files = [
        WrittenFile(path=path, size=1, digest="d", lines=None, tensors={}, sha256="e" * 64)
        for path in ("/code/last.pt", "/code/.env", "/var/log/x", "/codebook")
    ]
    made = [
        WrittenFile(path=path, size=0, digest=EMPTY_FOLDER, lines=None, tensors={})
        for path in ("/code", "/code/logs")  # the first is where the folder is mounted
    ]
    found = make_receipt(asked(project), run(0.0), None, written=[*files, *made])
    assert [file.path for file in found.outputs] == ["/code/last.pt", "/code/logs"]
    assert found.notes == ("the digest of /code/.env, which may hold secrets by its name",)


def test_many_steps_share_digests_and_one_that_differs_is_seen(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "MOST_MOMENTS", 7)
    one, other = (make_receipt(asked(project), run(drift), None, written=[]) for drift in (0.0, 1e-6))
    assert one.steps[0].count == 60
    assert len(one.steps[0].moments) == 7
    differ = [a == b for a, b in zip(one.steps[0].moments, other.steps[0].moments, strict=True)]
    assert differ == [True] * 4 + [False] * 3  # from step 37 on, nine steps to a digest


def test_the_same_run_gives_the_same_bytes(project: Path) -> None:
    first, second = (make_receipt(asked(project), run(0.0), None, written=[]).dump() for _ in range(2))
    assert first == second
    assert list(json.loads(first))[:2] == ["receipt", "by"]


def test_output_counts_in_its_order_for_one_process_alone() -> None:
    one = replace(run(0.0), stdout=("a", "b"))
    other = replace(one, stdout=("b", "a"))
    assert stdout_digest(one) != stdout_digest(other)
    both = [replace(each, streams=[*one.streams, *one.streams]) for each in (one, other)]
    assert stdout_digest(both[0]) == stdout_digest(both[1])


def test_the_certificates_of_this_machine_are_not_the_user_s() -> None:
    own = Bind(source=Path("/a"), destination="/run/reprobuild/ca-certificates.crt")
    mine = Bind(source=Path("/b"), destination="/code")
    variables = {"SSL_CERT_FILE": own.destination, "SEED": "7"}
    assert without_own([own, mine], variables) == ([mine], {"SEED": "7"})


def test_a_command_with_a_secret_is_refused() -> None:
    with pytest.raises(RepeatError, match=r"--receipt: --api-key of the command looks like a secret"):
        refuse_secrets(("python3", "a.py", "--api-key", "x"))
    refuse_secrets(("python3", "a.py"))


def test_that_more_was_read_than_is_kept_is_told(project: Path) -> None:
    cut = make_receipt(asked(project), replace(run(0.0), opened_cut=True), None, written=[])
    assert "files that a process read after 20,000 others" in cut.notes
