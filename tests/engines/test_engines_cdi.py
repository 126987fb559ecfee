"""What CDI files say of GPUs, as the library of Docker and Podman reads them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.engines.cdi import KIND, GpuAccess, host_paths
from reprobuild.engines.gpu import gpu_access
from reprobuild.errors import HostError
from reprobuild.host.sandbox import Bind, Device
from support.cdi import ALL, NODE, SPEC, a_spec, found

pytest_plugins = ["support.cdi"]

MOUNT = {"hostPath": "/etc", "containerPath": "/a"}
BIND = {"options": ["ro", "rbind"]}


@pytest.mark.parametrize("name", ["nvidia.yaml", "x.yaml", "nvidia.json"])
def test_a_specification_is_read_as_a_whole(cdi: Path, name: str) -> None:
    access = found(cdi, name=name)
    assert access.devices == [
        Device(path="/dev/nvidiactl", source=Path("/dev/nvidiactl")),
        Device(path="/dev/nvidia-uvm", source=Path("/dev/other-uvm")),
        Device(path="/dev/nvidia0", source=Path("/dev/nvidia0")),
        Device(path="/dev/nvidia1", source=Path("/dev/nvidia1")),
    ]
    library = "/usr/lib/libcuda.so.550"
    assert access.binds == [
        Bind(source=Path(library), destination=library),
        Bind(source=Path("/run/socket"), destination="/run/socket", writable=True),
    ]
    assert access.env == {"NVIDIA_VISIBLE_DEVICES": "void", "WITH": "a=b"}
    hook = SPEC["containerEdits"]["hooks"][0]
    assert access.hooks == {"createContainer": [{key: hook[key] for key in ("path", "args", "env")}]}


def test_the_device_called_all_stands_for_all(cdi: Path) -> None:
    spec = {**SPEC, "devices": [*SPEC["devices"], ALL, {"name": "mig", "containerEdits": {"env": ["MIG=1"]}}]}
    access = found(cdi, spec)
    assert [device.path for device in access.devices][2:] == ["/dev/nvidia0", "/dev/nvidia1"]
    assert "MIG" not in access.env


def test_what_devices_share_is_handed_in_once(cdi: Path) -> None:
    hook = {"hookName": "prestart", "path": "/bin/hook"}
    spec = a_spec(hooks=[hook], env=["A=1"])
    (device,) = spec["devices"]
    spec["devices"] = [{**device, "name": name} for name in "ab"]
    access = found(cdi, spec)
    assert access.devices == [Device(path="/dev/nvidia0", source=Path("/dev/nvidia0"))]
    assert access.hooks == {"prestart": [{"path": "/bin/hook"}]}


def test_files_for_other_devices_are_passed_over(cdi: Path) -> None:
    (cdi / "a.json").write_text(json.dumps({**SPEC, "kind": "vendor.example/nic"}))
    assert gpu_access([cdi, cdi / "nowhere"], Path("/nowhere")) == (
        "no NVIDIA GPU on this machine (no /nowhere/nvidia0, and no CDI file for nvidia.com/gpu)"
    )
    assert len(found(cdi).devices) == 4


def test_a_later_folder_outranks_an_earlier_one(cdi: Path, tmp_path: Path) -> None:
    """The specification of CDI says so: what is made at the machine's start wins over what is installed."""
    later = tmp_path / "run"
    later.mkdir()
    found(cdi)
    found(later, a_spec(env=["NEW=1"]))
    both = gpu_access([cdi, later], Path("/nowhere"))
    assert isinstance(both, GpuAccess)
    assert both.env["NEW"] == "1"
    paths = [device.path for device in both.devices]
    assert paths == ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1"]


def test_what_the_toolkit_made_at_the_start_outranks_an_old_file_of_all(cdi: Path, tmp_path: Path) -> None:
    """As nvidia-cdi-refresh does since toolkit 1.18; libraries of the driver before are gone."""
    later = tmp_path / "run"
    later.mkdir()
    found(cdi, {**SPEC, "devices": [*SPEC["devices"], ALL]})
    mount = {"hostPath": "/usr/lib/libcuda.so.580", "containerPath": "/usr/lib/libcuda.so.580", **BIND}
    new = {**a_spec(common={"mounts": [mount]}), "devices": [ALL]}
    alone = found(later, new)
    assert gpu_access([cdi, later], Path("/nowhere")) == alone
    assert [bind.destination for bind in alone.binds] == ["/usr/lib/libcuda.so.580"]


def test_a_file_that_defines_a_device_twice_is_refused(cdi: Path) -> None:
    with pytest.raises(HostError, match=r"nvidia\.yaml: not a valid CDI .*: it defines a device twice"):
        found(cdi, {**SPEC, "devices": [{"name": 0}, {"name": "0"}]})


def test_all_files_of_the_kind_count(cdi: Path) -> None:
    """As where each GPU has a file of its own."""
    for number in "01":
        edits = {"deviceNodes": [{"path": f"/dev/nvidia{number}"}], "additionalGids": [0, 44]}
        devices = [{"name": name, "containerEdits": edits} for name in (number, "all")]
        (cdi / f"nvidia-{number}.json").write_text(json.dumps({**a_spec(), "devices": devices}))
    access = gpu_access([cdi], Path("/nowhere"))
    assert isinstance(access, GpuAccess)
    assert [device.path for device in access.devices] == ["/dev/nvidia0", "/dev/nvidia1"]
    assert access.groups == [44]
    (cdi / "more.json").write_text((cdi / "nvidia-1.json").read_text())
    with pytest.raises(HostError, match=r"more\.json defines the GPU 1, too"):
        gpu_access([cdi], Path("/nowhere"))


def test_a_mount_in_memory_is_no_bind(cdi: Path) -> None:
    mount: dict[str, Any] = {
        "hostPath": "tmpfs",
        "containerPath": "/run/gpu",
        "type": "tmpfs",
        "options": ["rw"],
    }
    access = found(cdi, a_spec(mounts=[mount]))
    assert (access.binds, access.folders) == ([], {"/run/gpu": ("size=64m", "rw")})
    mount["options"] = ["nosuid", "size=1g", "mode=1777", "noexec"]
    assert found(cdi, a_spec(mounts=[mount])).folders == {"/run/gpu": ("size=64m", *mount["options"])}


def test_another_vendor_s_broken_file_is_no_reason(cdi: Path) -> None:
    texts = (
        "kind: vendor.example/nic\n a: [",
        f"# beside {KIND}\nkind: vendor.example/nic # kind: {KIND}\n a: [",
        f'{{"kind": "vendor.example/nic", "devices": [{{"name": "{KIND}"}}, ]}}',
        f"# kind: {KIND}\n a: [",
        f"a: [ {KIND}",
    )
    for text in texts:
        (cdi / "a.yaml").write_text(text)
        assert len(found(cdi).devices) == 4, text
    (cdi / "nvidia-nic.yaml").write_text("kind: nvidia.com/nic\n a: [")
    assert len(found(cdi).devices) == 4
    one_line = f'{{"cdiVersion": "0.5.0","kind":"{KIND}",}}'
    for text in (one_line, f"'kind': \"{KIND}\"\n a: [", f"Kind : {KIND}\n a: ["):
        (cdi / "b.json").write_text(text)
        with pytest.raises(HostError, match=r"b\.json: not a valid CDI specification"):
            gpu_access([cdi], Path("/nowhere"))
    (cdi / "b.json").unlink()
    (cdi / "b.yaml").write_text(f"kind: {KIND}\n a: [")
    with pytest.raises(HostError, match=r"b\.yaml: not a valid CDI specification"):
        gpu_access([cdi], Path("/nowhere"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "while parsing"),
        ("[]", "not a table"),
        ("", "not a table"),
        (yaml.safe_dump({"kind": KIND, "devices": [{}]}), "devices[0].name: missing"),
        (yaml.safe_dump({"kind": KIND, "devices": 5}), "devices: expected an array, got 5"),
        (yaml.safe_dump({"kind": KIND, "devices": ["a"]}), "devices[0]: expected an object"),
        (yaml.safe_dump(a_spec(common={"mounts": [{"hostPath": "/a"}]})), "containerPath"),
        (yaml.safe_dump(a_spec(common={"env": [[5]]})), "env[0]: expected a string"),
        (
            yaml.safe_dump(a_spec(common={"hooks": [{"hookName": "later", "path": "/a"}]})),
            "'later' is not a valid hookName",
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_the_host_s_fault(cdi: Path, text: str, reason: str) -> None:
    (cdi / "nvidia.yaml").write_text(text)
    with pytest.raises(HostError) as caught:
        gpu_access([cdi], Path("/nowhere"))
    assert caught.value.message.startswith(f"{cdi / 'nvidia.yaml'}: not a valid CDI specification: ")
    assert reason in caught.value.message
    assert "nvidia-ctk cdi generate" in caught.value.hint


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ({"mounts": [{"hostPath": "/etc", "containerPath": "/"}]}, "would hide locked files"),
        ({"mounts": [{"hostPath": "/etc", "containerPath": "//opt/./"}]}, "would hide locked files"),
        ({"mounts": [{"hostPath": "/etc", "containerPath": "/opt/venv/lib"}]}, "would hide locked files"),
        ({"mounts": [{"hostPath": "/a", "containerPath": "/opt/venv", "type": "tmpfs"}]}, "hide locked"),
        ({"mounts": [{"hostPath": "/etc", "containerPath": "/a/../../b"}]}, "not an absolute path"),
        ({"mounts": [{**MOUNT, **BIND, "hostPath": "etc"}]}, "not an absolute path"),
        ({"mounts": [{"hostPath": "/etc", "containerPath": "/a\nb"}]}, "not an absolute path"),
        ({"mounts": [{"hostPath": "/etc", "containerPath": [5]}]}, "expected a string, got"),
        ({"mounts": [{"hostPath": "/etc", "containerPath": "/a", "options": "rw"}]}, "expected an array"),
        ({"deviceNodes": [{"path": "/dev/../etc/x"}]}, "not an absolute path"),
        ({"deviceNodes": [{"path": "/dev/x", "hostPath": "x"}]}, "not an absolute path"),
        ({"env": "ABC"}, "expected an array"),
        ({"env": ["=x"]}, "not NAME=VALUE"),
        ({"env": ["A"]}, "not NAME=VALUE"),
        ({"env": ["A=\0"]}, "not NAME=VALUE"),
        ({"additionalGids": [1 << 40]}, "not ids of groups"),
        ({"additionalGids": [True]}, "not ids of groups"),
        ({"mounts": [{**MOUNT, "options": ["bind", "ro", "idmap"]}]}, "'idmap' is not a known option"),
        ({"mounts": [{**MOUNT, "options": ["ro"]}]}, "options: neither bind nor rbind is among them"),
        ({"mounts": [MOUNT]}, "options: neither bind nor rbind is among them"),
        ({"mounts": [{**MOUNT, "type": "overlay"}]}, "options: neither bind nor rbind is among them"),
        ({"mounts": [{**MOUNT, "type": "tmpfs", "options": ["size=5x"]}]}, "'size=5x' is not a known option"),
        ({"mounts": [{**MOUNT, **BIND, "readonly": True}]}, "mounts[0].readonly: unknown key"),
        ({"deviceNodes": [{**NODE, "permissions": "r"}]}, "permissions: 'r', but a GPU is read and written"),
        ({"deviceNodes": [{**NODE, "permissions": "none"}]}, "'none' is not a valid permissions"),
        ({"deviceNodes": [{**NODE, "type": "b"}]}, "type: 'b' is not that of a GPU, c"),
        ({"deviceNodes": [{**NODE, "minr": 0}]}, "deviceNodes[0].minr: unknown key"),
        ({"netDevices": [{"hostInterfaceName": "eth0", "name": "eth1"}]}, "netDevices: reprobuild cannot"),
        ({"intelRdt": {"closID": "gpu"}}, "intelRdt: reprobuild cannot"),
        ({"devices": []}, "containerEdits.devices: unknown key: reprobuild reads CDI up to 1.1.0"),
        ({"hooks": [{"hookName": "prestart", "path": "/a", "when": {}}]}, "hooks[0].when: unknown key"),
        ({"hooks": [{"hookName": "prestart"}]}, "path: missing"),
        ({"hooks": [{"hookName": "prestart", "path": "/a", "args": "x"}]}, "expected an array"),
        ({"hooks": [{"hookName": "prestart", "path": "/a", "env": ["\0"]}]}, "a NUL"),
        ({"hooks": [{"hookName": "prestart", "path": "/a", "timeout": "x"}]}, "expected a whole number"),
    ],
)
def test_edits_that_no_runtime_could_mean_are_refused(cdi: Path, edits: dict[str, Any], reason: str) -> None:
    with pytest.raises(HostError) as caught:
        found(cdi, a_spec(**edits), "nvidia.json")
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({**a_spec(), "cdiVersion": None}, "cdiVersion: missing"),
        (a_spec("9.9.9"), "cdiVersion: '9.9.9' is not one of 0.1.0, "),
        (a_spec("0.5.1"), "cdiVersion: '0.5.1' is not one of 0.1.0, "),
        (a_spec("0.4.0"), "'0.4.0', but a name that begins with a digit needs 0.5.0"),
        (a_spec("0.6.0", additionalGids=[44]), "'0.6.0', but additionalGids needs 0.7.0"),
        ({**a_spec("0.5.0"), "annotations": {"a": "b"}}, "'0.5.0', but annotations needs 0.6.0"),
        (
            a_spec("v0.3.0", "gpu0", mounts=[{**MOUNT, **BIND, "type": "bind"}]),
            "'0.3.0', but type of a mount needs 0.4.0",
        ),
        (
            a_spec("0.3.0", "gpu0", deviceNodes=[{**NODE, "hostpath": "/dev/nvidia1"}]),
            "'0.3.0', but hostPath of a node needs 0.5.0",
        ),
        ({**a_spec(), "devices": []}, "devices: there are none"),
        ({**a_spec(), "devices": [{"name": "all"}]}, "the device all has none"),
        (a_spec(name="0/1"), "name: '0/1' is not a name"),
        (a_spec(name=""), "name: '' is not a name"),
        ({**a_spec(), "containerRuntime": ["podman"]}, "containerRuntime: unknown key"),
        ({**a_spec(), "Devices": []}, "devices: is there twice"),
    ],
)
def test_what_docker_and_podman_refuse_is_refused(cdi: Path, spec: dict[str, Any], reason: str) -> None:
    """As pkg/cdi/spec.go and specs-go/version.go do; a file of a version to come may mean something else."""
    with pytest.raises(HostError, match=r"nvidia\.yaml: not a valid CDI specification: ") as caught:
        found(cdi, spec)
    assert reason in caught.value.message


def test_keys_are_read_in_any_case(cdi: Path) -> None:
    """As Go does; SPEC.md itself has additionalGIDs, and the library additionalGids."""
    assert found(cdi, a_spec(additionalGIDs=[44])).groups == [44]
    with pytest.raises(HostError, match="additionalGids: is there twice"):
        found(cdi, a_spec(additionalGIDs=[44], additionalGids=[45]))


@pytest.mark.parametrize(
    ("options", "writable"),
    [
        (["bind"], True),
        (["rbind", "nosuid", "nodev", "rprivate"], True),
        (["rbind", "ro", "nosuid", "noexec"], False),
        (["ro", "bind", "rw"], True),
        (["rw", "bind", "rro"], False),
    ],
)
def test_a_mount_is_writable_unless_its_options_say_ro(cdi: Path, options: list[str], writable: bool) -> None:
    """The specification of OCI leaves it to mount(8), for which rw is the default."""
    (bind,) = found(cdi, a_spec(mounts=[{**MOUNT, "options": options}])).binds
    assert bind.writable is writable


def test_a_file_without_a_gpu_that_cuda_can_open(cdi: Path) -> None:
    """KubeVirt's devices have the kind of GPUs as well; without a driver only /dev/dri is there."""
    for paths, more in ((["/dev/vfio/66", "/dev/vfio/vfio"], "virtual machines"), (["/dev/dri/card0"], "")):
        spec = a_spec(deviceNodes=[{"path": path, "type": "c", "permissions": "rwm"} for path in paths])
        (cdi / "nvidia.json").write_text(json.dumps(spec))
        reason = gpu_access([cdi], Path("/nowhere"))
        assert isinstance(reason, str)
        assert reason.startswith("the CDI file for nvidia.com/gpu names no GPU")
        assert more in reason
    for path in ("/dev/dxg", "/dev/nvmap", "/dev/nvhost-gpu", "/dev/nvgpu/igpu0/ctrl", "/dev/nvidia7"):
        assert found(cdi, a_spec(deviceNodes=[{"path": path}]), "nvidia.json").devices


def test_the_hook_within_the_container_need_not_be_on_this_machine(cdi: Path) -> None:
    """Its path is one in the container, that of the others on the host (opencontainers/runtime-spec)."""
    kinds = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
    access = found(cdi, a_spec(hooks=[{"hookName": kind, "path": f"/{kind}"} for kind in kinds]))
    assert {*access.hooks} == {*kinds}
    assert [*map(str, host_paths(access))][1:] == [f"/{kind}" for kind in kinds if kind != "startContainer"]


def test_null_is_as_good_as_nothing(cdi: Path) -> None:
    """As Go reads it."""
    node = {"path": "/dev/nvidia0", "hostPath": None}
    edits = {"deviceNodes": [node], "mounts": None, "hooks": None, "env": None, "additionalGids": None}
    spec = {**a_spec(), "annotations": None, "devices": [{"name": 0, "containerEdits": edits}]}
    assert [device.path for device in found(cdi, spec).devices] == ["/dev/nvidia0"]


def test_only_a_regular_file_within_bounds_is_read(cdi: Path) -> None:
    """A pipe would be waited for, and /dev/zero has no end."""
    file = cdi / "nvidia.json"
    os.mkfifo(file)
    with pytest.raises(HostError, match=r"nvidia\.json: .*: not a regular file"):
        gpu_access([cdi], Path("/nowhere"))
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(HostError, match=r"nvidia\.json: .*: not a regular file"):
        gpu_access([cdi], Path("/nowhere"))
    file.unlink()
    file.write_text(json.dumps(SPEC) + " " * (8 << 20))
    with pytest.raises(HostError, match=r"nvidia\.json: .*: it has more than 8,388,608 bytes"):
        gpu_access([cdi], Path("/nowhere"))


leaves = st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=3) | st.just("all")
KEYS = [
    "containerEdits",
    "devices",
    "deviceNodes",
    "mounts",
    "env",
    "hooks",
    "name",
    "path",
    "hookName",
    "options",
]
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=4))
def test_any_other_file_raises_no_other_error(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("cdi")
    (folder / "a.json").write_text(json.dumps({**table, "kind": KIND, "cdiVersion": "1.1.0"}))
    try:
        access = gpu_access([folder], Path("/nowhere"))
    except HostError:
        return
    assert isinstance(access, (GpuAccess, str))


def test_a_variable_of_the_image_is_not_replaced_in_silence(cdi: Path) -> None:
    access = found(cdi, a_spec(env=["PYTHONHASHSEED=7", "NVIDIA_VISIBLE_DEVICES=void"]))
    own = {"NVIDIA_VISIBLE_DEVICES": "all"}
    assert access.env_over({**own, "PYTHONHASHSEED": "7"}) == access.env
    with pytest.raises(HostError, match="sets PYTHONHASHSEED to '7', which is '0' in the image"):
        access.env_over({**own, "PYTHONHASHSEED": "0"})


def test_a_key_that_is_there_twice_is_no_specification(cdi: Path) -> None:
    """PyYAML takes the last one; Docker and Podman refuse it."""
    (cdi / "nvidia.yaml").write_text(f"kind: {KIND}\ncontainerEdits: {{env: [A=1]}}\ncontainerEdits: {{}}\n")
    with pytest.raises(HostError, match="line 3: the key 'containerEdits' is there twice"):
        gpu_access([cdi], Path("/nowhere"))


def test_a_node_may_not_hide_a_locked_file(cdi: Path) -> None:
    node = {"path": "/opt/reprobuild/selftest.py", "hostPath": "/dev/null"}
    with pytest.raises(HostError, match="would hide locked files of /opt/reprobuild"):
        found(cdi, a_spec(deviceNodes=[node]))
