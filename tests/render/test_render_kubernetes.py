"""The Job for a Kubernetes fleet: its text, what the API demands of it, what gathers reports."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reprobuild.errors import RenderError
from reprobuild.render.kubernetes import COLLECT, MANIFESTS, fleet_job
from support.locks import LOCK

IMAGE = "registry.example:5000/team/torch@sha256:" + "7" * 64
GOLDEN = Path(__file__).parents[1] / "golden"


def job(nodes: int = 8, cuda: str | None = None, image: str = IMAGE) -> tuple[dict[str, Any], dict[str, Any]]:
    lock = LOCK if cuda is None else replace(LOCK, request=replace(LOCK.request, cuda=cuda))
    policy, found = yaml.safe_load_all(fleet_job(lock, image, nodes)[MANIFESTS])
    return policy, found


@pytest.mark.parametrize("name", [MANIFESTS, COLLECT])
def test_the_files_are_golden_text(golden: Callable[[Path, bytes], None], name: str) -> None:
    golden(GOLDEN / f"kubernetes-{name}", fleet_job(LOCK, IMAGE, 8)[name])


def test_what_refers_to_another_part_finds_it() -> None:
    """As the API's validation holds it (pkg/apis/batch/validation, pkg/apis/core/validation)."""
    policy, found = job()
    spec, template = found["spec"], found["spec"]["template"]
    pod = template["spec"]
    assert spec["completions"] == spec["parallelism"] == 8
    assert spec["completionMode"] == "Indexed"
    [container] = pod["containers"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    labels = template["metadata"]["labels"].items()
    [term] = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"].items() <= labels
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels
    assert container["image"] == IMAGE
    # kubelet expands $(NAME) in a command.
    assert not any("$(" in word for word in container["command"])
    subprocess.run(["sh", "-n", "-c", container["command"][2]], check=True)


def test_the_pods_keep_to_the_restricted_profile() -> None:
    """The Pod Security Standards' "restricted", control by control."""
    pod = job()[1]["spec"]["template"]["spec"]
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "initContainers"}
    assert all(each.keys() == {"name", "emptyDir"} for each in pod["volumes"])
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


@pytest.mark.parametrize(("cuda", "gpus", "device"), [("cpu", None, "cpu"), ("12.1", 1, "cuda")])
def test_a_gpu_is_asked_for_where_the_image_is_for_one(cuda: str, gpus: int | None, device: str) -> None:
    [container] = job(cuda=cuda)[1]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"].get("nvidia.com/gpu") == gpus
    assert f"--device {device}" in container["command"][2]


@pytest.mark.parametrize(
    "image",
    ["team/torch:1", "registry.example/team/torch", IMAGE[:-1], f"{IMAGE}\nx: y", "x@sha256:" + "7" * 64],
)
def test_an_image_that_is_not_named_by_its_digest_is_refused(image: str) -> None:
    with pytest.raises(
        RenderError, match="does not name an image by its registry, its repository and its digest"
    ):
        fleet_job(LOCK, image, 2)


def test_a_tag_may_stand_beside_the_digest() -> None:
    """As people copy it; what counts is the digest."""
    name, _, digest = IMAGE.partition("@")
    [container] = job(image=f"{name}:v1.2_a@{digest}")[1]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{name}:v1.2_a@{digest}"
    for tag in ("", "a b", "-a", "a" * 129):
        with pytest.raises(RenderError, match="does not name an image by its registry"):
            fleet_job(LOCK, f"{name}:{tag}@{digest}", 2)


_KUBECTL = """\
#!/bin/sh
case "$*" in
*'get job'*) echo Complete ;;
*'phase=Succeeded'*) printf 'pod-0 n1\\npod-1 n2\\n' ;;
*'logs pod-'*) printf '{"%s":0}\\n{"%s":1}\\n{"%s":2}\\n' "$4" "$4" "$4" ;;
esac
printf '%s\n' "$*" >> asked
"""


def test_the_reports_of_each_pod_s_log_are_named_by_its_node(tmp_path: Path) -> None:
    """What kubectl answers is written down here, since there is no cluster: lines as its manual has them."""
    for name, text in (("kubectl", _KUBECTL), ("reprobuild", '#!/bin/sh\necho "$@" > compared\n')):
        program = tmp_path / name
        program.write_text(text)
        program.chmod(stat.S_IRWXU)
    (tmp_path / COLLECT).write_bytes(fleet_job(LOCK, IMAGE, 2)[COLLECT])
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", COLLECT, "--namespace", "team"], cwd=tmp_path, env=env, check=True)
    [folder] = tmp_path.glob("*.reports")
    found = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
    assert found == {
        f"{node}{run}.json": {pod: number}
        for node, pod in (("n1", "pod-0"), ("n2", "pod-1"))
        for number, run in enumerate(("", " busy 1", " busy 2"))
    }
    assert (tmp_path / "compared").read_text().startswith(f"selftest --fleet {folder.name}/n1 busy 1.json")
    assert all("--namespace team" in line for line in (tmp_path / "asked").read_text().splitlines())
