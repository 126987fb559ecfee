"""Evidence by the command line: `image`, `push`, `export`, `verify`, with an image without packages."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import EvidenceError
from reprobuild.host.home import Home
from reprobuild.host.machine import architecture
from reprobuild.oci.documents import INDEX_TYPE, MANIFEST_TYPE
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.oci.registry.referrers import Attachment, attach, referrers
from reprobuild.pipeline import steps
from reprobuild.pipeline.workspace import read_lock
from reprobuild.render.own_files import own_files
from reprobuild.verify.evidence.document_store import keep_vote
from reprobuild.verify.evidence.judgement import judge
from reprobuild.verify.evidence.keys import read_private_key
from reprobuild.verify.evidence.policy import Policy
from reprobuild.verify.evidence.signatures import BUNDLE, IN_TOTO, sign, statement_in
from reprobuild.verify.evidence.statements import Subject, rebuilt
from reprobuild.verify.find_evidence import Evidenced
from reprobuild.verify.required import refuse
from support.evidence import write_key
from support.registry import Fault, gate_before
from support.reports import FAILED, a_check

if TYPE_CHECKING:
    from reprobuild.verify.find import EngineImage
    from support.commands import Call

pytest_plugins = ["support.commands", "support.evident"]


def test_an_image_has_evidence_from_the_start_unsigned(image: str, call: Call, key: Path) -> None:
    said = call("verify", "team/toy:1", "--json")
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert (found["digest"], found["refused"]) == (image, [])
    assert found["signed_by"] == {"sbom": [], "provenance": [], "test-result": []}
    said = call("verify", "team/toy:1")
    assert "verdict the word of whoever wrote it, since no key was given" in " ".join(said.out.split())
    said = call("verify", "team/toy:1", "--key", str(key.with_suffix(".pub")))
    assert (said.status, said.out.count("has no signature")) == (17, 3)
    assert "there is no sbom that counts" in said.err
    other, policy = write_key(key.parent, "other").with_suffix(".pub"), key.parent / "policy.toml"
    policy.write_text(f'keys = ["{other}"]\n')
    said = call("verify", "team/toy:1", "--policy", str(policy), "--key", str(key.with_suffix(".pub")))
    assert (said.status, "the policy's keys do not have" in said.err) == (17, True)


def test_clean_takes_the_evidence_of_an_image_that_is_gone(image: str, call: Call) -> None:
    evidence = Home.from_environment().folder("evidence")
    assert call("clean").status == 0
    assert [folder.name for folder in evidence.iterdir()] == [image[7:]]
    assert call("remove", "team/toy:1").status == 0
    assert call("clean").status == 0
    assert not list(evidence.iterdir())


def test_an_image_that_failed_since_is_not_passed_off(
    runs: Any, lock: Path, call: Call, key: Path, registry: str
) -> None:
    assert call("image", str(lock), "--tag", "team/toy:1", "--sign-key", str(key)).status == 0
    runs(FAILED)
    assert call("selftest", "team/toy:1").status == 9
    assert call("push", "team/toy:1", f"{registry}/team/toy:1", "--sign-key", str(key)).status == 0
    said = call("verify", f"{registry}/team/toy:1", "--key", str(key.with_suffix(".pub")))
    assert said.status == 17
    assert "the self-test failed: conv2d" in said.err


def test_a_report_whose_bits_changed_is_not_signed(image: str, call: Call, key: Path, registry: str) -> None:
    (report,) = Home.from_environment().folder("reports").glob("*.json")
    whole = report.read_text()
    for old, new, says in (
        ("b" * 64, "e" * 64, "fingerprint: that of 'conv2d' is not the one of its results"),
        ("AACAPw==", "AAAAQA==", "the report is damaged, or not that of the image"),
    ):
        report.write_text(whole.replace(old, new))
        said = call("push", "team/toy:1", f"{registry}/team/toy:1", "--sign-key", str(key))
        assert said.status == 9
        assert says in said.err


def test_an_archive_has_its_evidence_beside_it(image: str, call: Call, key: Path, folder: Path) -> None:
    assert call("export", "team/toy:1", "toy.tar").status == 0
    assert len(Path("toy.tar.evidence.jsonl").read_bytes().splitlines()) == 3
    said = call("verify", "toy.tar", "--json")
    assert (said.status, json.loads(said.out)["digest"]) == (0, image)
    Path("toy.tar.evidence.jsonl").rename("elsewhere.jsonl")
    assert call("verify", "toy.tar").status == 17
    assert call("verify", "toy.tar", "--evidence", "elsewhere.jsonl").status == 0
    other = (
        Path("elsewhere.jsonl")
        .read_text()
        .replace(f'"image":"sha256:{image[7:]}"', f'"image":"sha256:{"0" * 64}"')
    )
    Path("elsewhere.jsonl").write_text(other)
    said = call("verify", "toy.tar", "--evidence", "elsewhere.jsonl")
    assert said.status == 17
    assert "its report is about another image, sha256:0000" in said.err


def test_the_bill_of_materials_stays_whole_when_wheels_are_gone(
    image: str, call: Call, key: Path, registry: str
) -> None:
    home, place = Home.from_environment(), f"{registry}/team/toy:1"
    folder = home.folder("evidence") / image[7:]
    before = (folder / "sbom.sealed").read_bytes().partition(b"\n")[2]
    assert b'"dependencies"' in before
    for wheel in home.folder("store").glob("sha256/*/*"):
        wheel.unlink()
    said = call("push", "team/toy:1", place, "--sign-key", str(key))
    assert (said.status, "neither their licenses" in said.err) == (0, False), said.err
    assert statement_in((folder / "sbom.sealed").read_bytes().partition(b"\n")[2]) == before
    shutil.rmtree(folder)
    said = call("push", "team/toy:1", place, "--sign-key", str(key))
    assert said.status == 0
    assert "packages are not in the store" in said.err


def test_a_private_key_that_everybody_can_read_is_reported(
    image: str, call: Call, key: Path, registry: str
) -> None:
    for mode, reported in ((0o640, False), (0o644, True)):
        key.chmod(mode)
        said = call("push", "team/toy:1", f"{registry}/team/toy:1", "--sign-key", str(key))
        assert (said.status, "can be read by every user" in said.err) == (0, reported), said.err


def test_the_same_evidence_is_not_attached_again(
    image: str, call: Call, registry: str, tmp_path: Path
) -> None:
    """ECDSA gives another signature each time, and each would be one document more."""
    key, place = write_key(tmp_path / "keys", "team", "p256"), f"{registry}/team/toy:1"
    for _ in range(2):
        assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    found = list(referrers(Registry(Target.parse(place)), image, (BUNDLE, IN_TOTO)))
    assert len(found) == 3
    other = write_key(tmp_path / "keys", "other")
    assert call("push", "team/toy:1", place, "--sign-key", str(other)).status == 0
    found = list(referrers(Registry(Target.parse(place)), image, (BUNDLE, IN_TOTO)))
    assert len(found) == 6


def test_a_rebuild_gives_the_same_bytes_and_is_signed_as_a_vote(
    image: str, call: Call, key: Path, registry: str, tmp_path: Path
) -> None:
    place = f"{registry}/team/toy:1"
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    for name in ("one", "two"):
        builder = write_key(tmp_path / "keys", name)
        said = call("verify", place, "--level", "rebuild", "--sign-key", str(builder), "--json")
        assert said.status == 0, said.err
        assert json.loads(said.out)["rebuilt"] == "identical: the same bytes"
    said = call("verify", place, "--level", "rebuild", "--sign-key", str(builder))
    assert "has signed one already" in said.out
    policy = tmp_path / "keys/policy.toml"
    policy.write_text('keys = ["team.pub"]\nbuilders = 2\nbuilder-keys = ["one.pub", "two.pub"]\n')
    assert call("verify", place, "--policy", str(policy)).status == 0
    voters = [f"--builder-key={tmp_path}/keys/{name}.pub" for name in ("one", "two")]
    asked = ("verify", place, "--key", str(key.with_suffix(".pub")), "--builders", "2")
    assert call(*asked, *voters).status == 0
    said = call(*asked, voters[0], voters[0])
    assert (said.status, "--builder-key has 1 different key" in said.err) == (17, True), said.err
    write_key(tmp_path / "keys", "three")
    policy.write_text('keys = ["team.pub"]\nbuilders = 2\nbuilder-keys = ["one.pub", "three.pub"]\n')
    said = call("verify", place, "--policy", str(policy))
    assert said.status == 17
    assert "builders that rebuilt it: 1, and the policy asks for 2" in said.err


def test_other_layers_below_a_signed_configuration(image: str, call: Call, key: Path, registry: str) -> None:
    """A configuration names its layers by what they unpack to, which nobody has looked at in a registry."""
    public, place = str(key.with_suffix(".pub")), f"{registry}/team/toy:1"
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    assert call("export", "team/toy:1", "toy.tar").status == 0
    target = Registry(Target.parse(place))
    with tarfile.open("evil.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("usr/bin/sh"))
    evil = f"{registry}/team/toy:evil"
    for content in (Path("evil.tar").read_bytes(), b"\x28\xb5\x2f\xfdbad"):
        manifest = json.loads(target.read_manifest("1"))
        Path("evil.tar").write_bytes(content)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        target.send_blob(digest, Path("evil.tar"), lambda _: None)
        kind = "application/vnd.oci.image.layer.v1.tar"
        manifest["layers"][0] = {"digest": digest, "mediaType": kind, "size": len(content)}
        target.send_manifest(json.dumps(manifest).encode(), "evil")
        said = call("verify", evil, "--evidence", "toy.tar.evidence.jsonl", "--key", public)
        assert said.status == 17, said.out
        assert f"its layer {digest[:19]} is not the one of its configuration" in said.err
    # Podman takes files by a table in a layer's annotations, which need not be those of its bytes.
    table = json.loads(target.read_manifest("1"))
    table["layers"][0]["annotations"] = {"io.github.containers.zstd-chunked.manifest-position": "1:2:3:1"}
    target.send_manifest(json.dumps(table).encode(), "chunked")
    said = call("verify", f"{registry}/team/toy:chunked", "--evidence", "toy.tar.evidence.jsonl")
    assert (said.status, "has a table of its files" in said.err) == (17, True), said.out
    # Nor does a rebuild to that configuration say anything of them, whatever somebody wrote of the manifest.
    evil_digest = hashlib.sha256(target.read_manifest("evil")).hexdigest()
    kinds = [statement_in(line) for line in Path("toy.tar.evidence.jsonl").read_bytes().splitlines()]
    Path("forged.jsonl").write_bytes(b"\n".join(kinds).replace(image[7:].encode(), evil_digest.encode()))
    said = call("verify", evil, "--evidence", "forged.jsonl", "--level", "rebuild")
    assert said.status == 17, said.out
    assert "is not the one of its configuration" in said.err
    del manifest["layers"][0]
    target.send_manifest(json.dumps(manifest).encode(), "evil")
    said = call("verify", evil, "--evidence", "toy.tar.evidence.jsonl")
    assert "its manifest and configuration do not match" in said.err
    # The same layers in another compression are those of the configuration.
    gzip = f"{registry}/team/toy:gzip"
    assert call("push", "team/toy:1", gzip, "--compression", "gzip").status == 0
    said = call("verify", gzip, "--key", public)
    assert (said.status, "downloading the layers" in said.err) == (0, True), said.err
    # Signed for that manifest they need not be read.
    again = ("--compression", "gzip", "--sign-key", str(key))
    assert call("push", "team/toy:1", gzip, *again).status == 0
    said = call("verify", gzip, "--key", public)
    assert (said.status, "downloading the layers" in said.err) == (0, False), said.err


def test_a_registry_that_withholds_the_lock_is_an_error(
    image: str, call: Call, key: Path, registry: str
) -> None:
    """Without it nothing is compared with the lock: not given must not look like not there."""
    public, path = str(key.with_suffix(".pub")), "team/toy:1"
    assert call("push", "team/toy:1", f"{registry}/{path}", "--sign-key", str(key)).status == 0
    layers = json.loads(Registry(Target.parse(f"{registry}/{path}")).read_manifest("1"))["layers"]
    blob = f"GET /v2/team/toy/blobs/{layers[-1]['digest']}"
    with gate_before(registry) as gate:
        faults: tuple[Fault, ...] = ("drop", 404, 401)
        for fault in faults:
            gate.faults[blob] = [fault] * 9
            said = call("verify", f"{gate.host}/{path}", "--key", public)
            assert (said.status, "suffices" in said.out, "zip()" in said.err) == (15, False, False), said.err
        gate.faults.clear()
        assert call("verify", f"{gate.host}/{path}", "--key", public).status == 0


def test_of_a_list_of_platforms_the_verdict_says_which_one_it_is_about(
    image: str, call: Call, key: Path, registry: str
) -> None:
    public, place = str(key.with_suffix(".pub")), f"{registry}/team/toy:1"
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    target = Registry(Target.parse(place))
    entry = {"digest": image, "mediaType": MANIFEST_TYPE, "size": len(target.read_manifest("1"))}
    both = [
        {**entry, "platform": {"os": "linux", "architecture": each}} for each in (architecture(), "riscv64")
    ]
    table = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": both}
    target.send_manifest(json.dumps(table).encode(), "both", INDEX_TYPE)
    said = call("verify", f"{registry}/team/toy:both", "--key", public)
    assert (said.status, "not judged: linux/riscv64" in said.out) == (0, True), said.err
    said = call("verify", f"{registry}/team/toy:both", "--key", public, "--json")
    assert "the image for linux/riscv64" in json.loads(said.out)["not_asked"]
    assert "images for linux/riscv64" in call("inspect", f"{registry}/team/toy:both").out


def test_an_entry_of_a_list_hides_no_other(
    image: str, call: Call, key: Path, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up digest that is shown as another one's beginning took that document's place."""
    public, place = str(key.with_suffix(".pub")), f"{registry}/team/toy:1"
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    index = Registry(Target.parse(place)).read_manifest(image.replace(":", "-"))
    listed = json.loads(index)["manifests"]
    made_up = [{**entry, "digest": entry["digest"][:19]} for entry in listed]
    for entries in ([*listed, *made_up], [*made_up, *listed]):
        monkeypatch.setattr(Registry, "referrers", lambda *_, each=entries: each)
        said = call("verify", place, "--key", public)
        assert (said.status, said.out.count("is not one document about this image")) == (0, 3), said.err


@pytest.mark.parametrize("told", ["text/plain", "application/vnd.cncf.notary.signature", None])
def test_the_type_that_a_list_gives_a_failed_test_hides_it_not(
    image: str, call: Call, key: Path, registry: str, runs: Any, told: str | None
) -> None:
    """A registry that lists a failed test as something else let the one before it count."""
    public, place = str(key.with_suffix(".pub")), f"{registry}/team/toy:1"
    target, tag = Registry(Target.parse(place)), image.replace(":", "-")
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    before = {entry["digest"] for entry in json.loads(target.read_manifest(tag))["manifests"]}
    assert call("verify", place, "--key", public).status == 0
    runs(FAILED)
    assert call("selftest", "team/toy:1").status == 9
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    index = json.loads(target.read_manifest(tag))
    new = [entry for entry in index["manifests"] if entry["digest"] not in before]
    assert new
    for entry in new:
        entry["artifactType"] = told
    target.send_manifest(json.dumps(index).encode(), tag, INDEX_TYPE)
    said = call("verify", place, "--key", public)
    assert (said.status, "the self-test failed: conv2d" in said.err) == (17, True), said.out


def test_what_others_attach_is_named_and_does_no_harm(
    image: str, call: Call, key: Path, registry: str
) -> None:
    public, place = str(key.with_suffix(".pub")), f"{registry}/team/toy:1"
    target = Registry(Target.parse(place))
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    kind = "application/vnd.cncf.notary.signature"
    attach(target, target.read_manifest("1"), [Attachment(kind, b"\x30\x82"), Attachment("a/b", b'{"c": 1}')])
    said = call("verify", place, "--key", public)
    assert said.status == 0, said.err
    lines = [line for line in said.out.splitlines() if line.startswith("does not count: referrer sha256:")]
    assert [f"'{kind}': it is not JSON" in line for line in lines].count(True) == 1
    assert ["'a/b': it is neither a statement nor a bundle" in line for line in lines].count(True) == 1
    assert len(lines) == 2
    shown = call("inspect", place, "--key", public)
    assert (shown.status, shown.out.count("cannot be read")) == (0, 2)


def test_a_tampered_image_with_its_lock_and_evidence_is_not_what_a_rebuild_gives(
    image: str, call: Call, folder: Path, registry: str
) -> None:
    """Whoever changes a file must change the digest, and evidence without a key can be made for that."""
    unpack = "mkdir x && tar xf toy.tar -C x"
    assert call("export", "team/toy:1", "toy.tar").status == 0
    subprocess.run(["sh", "-c", unpack], check=True)
    changed = retagged(Path("x"), "usr/bin/sh")
    said = call("verify", "./x", "--level", "rebuild")
    assert said.status == 17  # the evidence is not about it
    Path("forged.jsonl").write_text(
        Path("toy.tar.evidence.jsonl").read_text().replace(image[7:], changed[7:])
    )
    said = call("verify", "./x", "--level", "rebuild", "--evidence", "forged.jsonl")
    assert said.status == 13, said.err
    assert "/usr/bin/sh: content" in said.out
    assert "(changed: " in said.out
    # In a registry the layers that the rebuilt image lacks are downloaded.
    place = f"{registry}/team/toy:evil"
    send(Path("x"), place)
    said = call("verify", place, "--level", "rebuild", "--evidence", "forged.jsonl")
    assert said.status == 13, said.err
    assert "/usr/bin/sh: content" in said.out
    assert said.err.count("which the rebuilt image lacks") == 1
    # An image with a layer twice has the same files.
    blobs = Path("x/blobs/sha256")
    manifest = json.loads((blobs / image[7:]).read_bytes())
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_bytes())
    manifest["layers"].append(manifest["layers"][-1])
    config["rootfs"]["diff_ids"].append(config["rootfs"]["diff_ids"][-1])
    again = relabeled(Path("x"), manifest, config)
    send(Path("x"), place)
    Path("forged.jsonl").write_text(Path("toy.tar.evidence.jsonl").read_text().replace(image[7:], again[7:]))
    said = call("verify", place, "--level", "rebuild", "--evidence", "forged.jsonl", "--json")
    layers = len(manifest["layers"])
    assert json.loads(said.out)["rebuilt"] == (
        f"identical files; the layers are made in another way: {layers} layers, not {layers - 1}"
    )
    # A value of two lines is one, or it could end with a line that says the contrary.
    config["config"]["Env"] += [f"{name}=/a\nthey are the same" for name in ("PYTHONPATH", "LD_PRELOAD")]
    Path("forged.jsonl").write_text(
        Path("toy.tar.evidence.jsonl")
        .read_text()
        .replace(image[7:], relabeled(Path("x"), manifest, config)[7:])
    )
    for argv in (
        ("check", "./x"),
        ("verify", "./x", "--level", "rebuild", "--evidence", "forged.jsonl"),
    ):
        said = call(*argv)
        assert said.status == 13, said.err
        (line,) = [each for each in said.out.splitlines() if each.startswith("Env LD_PRELOAD: setting")]
        assert "/a\\u000athey are the same" in line
        assert "they are the same" not in {line[:17] for line in said.out.splitlines()}


def test_of_another_release_it_says_so(image: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_files()
    monkeypatch.setattr(steps, "own_files", lambda: replace(own, version="9.9"))
    said = call("verify", "team/toy:1", "--level", "rebuild")
    assert said.status == 17
    assert f"was made by reprobuild {own}, and this is 9.9" in said.err


def test_a_retest_compares_with_what_was_reported(image: str, call: Call, runs: Any) -> None:
    said = call("verify", "team/toy:1", "--level", "retest")
    assert said.status == 0, said.err
    assert "1 results equal those reported" in " ".join(said.out.split())
    runs(a_check(results={"output": "c" * 64}))
    said = call("verify", "team/toy:1", "--level", "retest")
    assert said.status == 9
    assert "gives other results than were reported" in said.err
    runs(FAILED)
    assert "failed its self-test here" in call("verify", "team/toy:1", "--level", "retest").err


def test_a_retest_of_what_a_registry_has_is_that_of_the_image_pulled_from_it(
    image: str, call: Call, key: Path, registry: str, runs: Any
) -> None:
    """Evidence is in the registry and the layers in an engine: neither has both."""
    place, public = f"{registry}/team/toy:1", str(key.with_suffix(".pub"))
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    said = call("verify", place, "--key", public, "--level", "retest")
    assert (said.status, "1 results equal those reported" in " ".join(said.out.split())) == (0, True), (
        said.err
    )
    runs(a_check(results={"output": "c" * 64}))
    said = call("verify", place, "--key", public, "--level", "retest")
    assert (said.status, "gives other results than were reported" in said.err) == (9, True)
    for argv in (("remove", "team/toy:1"), ("clean",)):
        assert call(*argv).status == 0
    said = call("verify", place, "--key", public, "--level", "retest")
    assert (said.status, "no engine here has it" in said.err) == (17, True), said.err


@pytest.mark.parametrize(
    ("kind", "hint"), [("podman", "name the image in its registry"), ("oci", "push --sign")]
)
def test_an_image_without_evidence_is_told_where_to_get_some(kind: str, hint: str) -> None:
    subject = Subject("sha256:" + "a" * 64, "")
    kept = cast("EngineImage", SimpleNamespace(engine=SimpleNamespace(kind=kind)))
    found = Evidenced(name="x", subject=subject, documents={}, lock=None, kept=kept)
    with pytest.raises(EvidenceError, match="there is no sbom that counts") as caught:
        refuse("x", found, judge({}, subject, Policy(), datetime.now(UTC)))
    assert hint in caught.value.hint


def retagged(layout: Path, path: str) -> str:
    """Change a file of the image of a layout, and all digests with it; return the new one of the image."""
    index = json.loads((layout / "index.json").read_bytes())
    blobs = layout / "blobs/sha256"
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_bytes())
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_bytes())
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(path)
        info.size, info.mode = 4, 0o755
        tar.addfile(info, io.BytesIO(b"evil"))

    def put_blob(data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    layer = hashlib.sha256(out.getvalue()).hexdigest()
    (blobs / layer).write_bytes(out.getvalue())
    config["rootfs"]["diff_ids"].insert(-1, f"sha256:{layer}")  # the uppermost has the lock
    kind = "application/vnd.oci.image.layer.v1.tar"
    size = len(out.getvalue())
    manifest["layers"].insert(-1, {"digest": f"sha256:{layer}", "mediaType": kind, "size": size})
    return relabeled(layout, manifest, config)


def relabeled(layout: Path, manifest: Any, config: Any) -> str:
    """Make an image with these documents the one of a layout; return its digest."""

    def put_blob(data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (layout / "blobs/sha256" / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    index = json.loads((layout / "index.json").read_bytes())
    manifest["config"] |= put_blob(json.dumps(config).encode())
    index["manifests"][0] |= put_blob(json.dumps(manifest).encode())
    (layout / "index.json").write_text(json.dumps(index))
    return str(index["manifests"][0]["digest"])


def send(layout: Path, place: str) -> None:
    """Send the image of a layout to a registry, as any client can."""
    target, blobs = Registry(Target.parse(place)), layout / "blobs/sha256"
    (entry,) = json.loads((layout / "index.json").read_bytes())["manifests"]
    manifest = json.loads((blobs / entry["digest"][7:]).read_bytes())
    for blob in (manifest["config"], *manifest["layers"]):
        target.send_blob(blob["digest"], blobs / blob["digest"][7:], lambda _: None)
    target.send_manifest((blobs / entry["digest"][7:]).read_bytes())


def test_what_nobody_has_looked_at_is_said(
    runs: Any, lock: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict says what it does not cover: what was not run, nor asked for."""
    lost = a_check(name="matmul", status="not-run", reason="no room", results={}, values={})
    unsure = a_check(name="control", status="inconclusive", reason="one processor", results={}, values={})
    runs(lost, unsure)
    assert call("image", str(lock), "--tag", "team/toy:1").status == 0
    said = " ".join(call("verify", "team/toy:1").out.split())
    found = json.loads(call("verify", "team/toy:1", "--json").out)
    passed = len(found["test"]["checks"]) - 2
    assert f"tested passed, {passed} of {passed + 2} checks, on Some CPU" in said
    assert "unsure control: one processor not run matmul: no room" in said
    assert "GPU not tested: there is no GPU here" in said
    assert "not asked age, certain checks, a GPU, a profile, other builders: --policy; a rebuild or a" in said
    assert found["not_asked"] == [
        "age", "certain checks", "a GPU", "a profile", "other builders", "a rebuild", "a retest"
    ]  # fmt: skip
    assert {"name": "matmul", "status": "not-run", "reason": "no room"} in found["test"]["checks"]
    Path("policy.toml").write_text(
        'checks = ["conv1d"]\nprofile = "strict"\nmax-age-days = 3\ngpu = "H"\nbuilders = 1\n'
        f'builder-keys = ["{write_key(Path(), "one").with_suffix(".pub")}"]\n'
    )
    found = json.loads(call("verify", "team/toy:1", "--policy", "policy.toml", "--json").out)
    assert found["not_asked"] == ["a rebuild", "a retest"]
    number = len(found["test"]["checks"])
    covers = f"{number - 1} of {number} checks ran, 1 did not; no GPU was tested"
    assert covers in said.partition("verdict ")[2]
    Path("policy.toml").write_text('profile = "strict"\n')
    monkeypatch.setattr(OciEngine, "run", lambda *_: 0)
    for argv in (("run", "--require", "policy.toml"), ("doctor", "--require", "policy.toml")):
        assert covers in " ".join(call(*argv, "team/toy:1").err.split())
    assert "tested passed, " in " ".join(call("inspect", "team/toy:1").out.split())


def test_a_key_that_signs_the_evidence_too_is_no_builder_s_anywhere(
    image: str, call: Call, key: Path, monkeypatch: pytest.MonkeyPatch, lock: Path
) -> None:
    monkeypatch.setattr(OciEngine, "run", lambda *_: 0)
    team, one = key.with_suffix(".pub"), write_key(key.parent, "one")
    assert call("image", str(lock), "--tag", "team/toy:1", "--sign-key", str(key)).status == 0
    policy = key.parent / "policy.toml"
    policy.write_text(f'keys = ["{team}"]\nbuilders = 1\nbuilder-keys = ["{team}", "one.pub"]\n')
    ways = (
        ("verify", "team/toy:1", "--policy", str(policy)),
        ("run", "--require", str(policy), "team/toy:1", "true"),
        ("doctor", "team/toy:1", "--require", str(policy)),
    )

    def vote(of: Path) -> None:
        text = rebuilt(Subject(image, ""), read_lock(lock).digest, datetime.now(UTC))
        keep_vote(Home.from_environment(), image, sign(text, read_private_key(of, str)), of.stem)

    vote(key)
    for argv, status in zip(ways, (17, 17, 7), strict=True):
        said = call(*argv)
        assert said.status == status, said.err
        assert "rebuilt it: 0, and the policy asks for 1" in " ".join((said.out + said.err).split())
        assert "keys has too, so by no other builder" in " ".join((said.out + said.err).split())
    vote(one)
    assert [call(*argv).status for argv in ways[:2]] == [0, 0]
    # Who is trusted by --key alone has rebuilt it, and is no other builder.
    said = call("verify", "team/toy:1", "--key", str(team))
    assert "rebuilders no other; and 1 that may sign the evidence" in " ".join(said.out.split())


def test_run_and_doctor_ask_for_what_a_policy_wants(
    runs: Any, lock: Path, call: Call, key: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[str] = []

    def run(_: OciEngine, image: str, *_rest: object) -> int:
        started.append(image)
        return 0

    monkeypatch.setattr(OciEngine, "run", run)
    assert call("image", str(lock), "--tag", "team/toy:1").status == 0
    policy = tmp_path / "policy.toml"
    policy.write_text(f'keys = ["{key.with_suffix(".pub")}"]\n')
    said = call("run", "--require", str(policy), "team/toy:1", "--", "true")
    assert (said.status, started) == (17, [])
    assert "sbom.json: has no signature, so it does not count" in said.err
    said = call("doctor", "team/toy:1", "--require", str(policy), "--json")
    assert said.status == 7
    (bad,) = [each for each in json.loads(said.out) if each["name"] == "evidence"]
    assert (bad["good"], "has no signature" in bad["text"]) == (False, True)
    made = json.loads(call("image", str(lock), "--tag", "team/toy:1", "--sign-key", str(key), "--json").out)
    assert call("run", "--require", str(policy), "team/toy:1", "--", "true").status == 0
    assert started == [made["digest"]]
    (good,) = [
        each
        for each in json.loads(call("doctor", "team/toy:1", "--require", str(policy), "--json").out)
        if each["name"] == "evidence"
    ]
    assert good["good"]
    policy.write_text("max-age-days = 3\n")
    said = call("run", "--require", str(policy), "team/toy:1", "--", "true")
    assert (said.status, "names no keys, so evidence that anybody wrote meets it" in said.err) == (0, True)
    policy.write_text("keyz = 1\n")
    assert call("run", "--require", str(policy), "team/toy:1").status == 17
    assert call("doctor", "team/toy:1", "--require", str(policy)).status == 17
    assert call("doctor", str(lock), "--require", str(policy)).status == 2
