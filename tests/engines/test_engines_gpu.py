"""What of the host's GPUs gets into a container, by CDI files and device nodes; handed in for real."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import needs
from reprobuild.engines import embedded, podman_options
from reprobuild.engines import gpu as gpu_module
from reprobuild.engines.cdi import GpuAccess
from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.gpu import gpu_access, not_known, not_there
from reprobuild.engines.protocols import RunOptions
from reprobuild.errors import HostError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.sandbox import Bind, Device
from reprobuild.render.own_files import selftest_files
from reprobuild.selftest.run import Gpu, run_selftest
from reprobuild.twice.recorded_run import HowToRun, read_run
from support.cdi import a_spec, found
from support.reports import a_check, a_report
from support.small_root import small_image

pytest_plugins = ["support.cdi"]

CONSOLE = Console(quiet=True)
LIBRARY = "/usr/lib/gpu/libcuda.so.1"
ZERO = {"path": "/dev/nvidia0", "hostPath": "/dev/zero"}
# --- device nodes ---


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    folder = tmp_path / "dev"
    (folder / "nvidia-caps").mkdir(parents=True)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (folder / name).symlink_to("/dev/zero")
    (folder / "nvidia9").write_text("a file is no device")
    return folder


LIBRARIES = ("libcuda.so.1", "libnvidia-nvvm70.so.4", "libnvidia-gpucomp.so.550.54", "libnvcuvid.so.1")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Libraries of a driver, and an ldconfig that knows them: this machine's has none."""
    machine = "libc6,x86-64" if os.uname().machine == "x86_64" else "libc6,AArch64"
    lines = ["5 libs found in cache `/etc/ld.so.cache'"]
    monkeypatch.setattr(gpu_module, "_LIBRARY_FOLDERS", ())
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    for name in (*LIBRARIES, "libcuda.so", "libc.so.6"):
        file = tmp_path / f"{name}.550.54"
        file.write_text(name)
        (tmp_path / name).symlink_to(file)
        lines += [f"\t{name} (libc6) => /lib32/{name}", f"\t{name} ({machine}) => {tmp_path / name}"]
        lines.append(f"\t{name} ({machine}) => /second/{name}")
    program = tmp_path / "bin/ldconfig"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat <<'E'\n" + "\n".join(lines) + "\nE\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


def test_without_cdi_the_nodes_and_the_driver_s_libraries_are_taken(
    dev: Path, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The dynamic linker asks ldconfig's cache before it looks into folders of its own.
    a_library(driver / "later/libcuda.so.1")
    monkeypatch.setattr(gpu_module, "_LIBRARY_FOLDERS", (str(driver / "later"),))
    access = gpu_access([], dev)
    assert isinstance(access, GpuAccess)
    names = ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]
    assert access.devices == [Device(path=f"/dev/{name}", source=dev / name) for name in names]
    libraries = {name: name for name in LIBRARIES} | {
        "libcuda.so": "libcuda.so.1"
    }  # Triton links with -lcuda
    assert access.binds == [
        Bind(source=driver / f"{file}.550.54", destination=f"/usr/local/nvidia/lib64/{name}")
        for name, file in sorted(libraries.items())
    ]
    assert access.env == {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}
    assert access.env_over({"LD_LIBRARY_PATH": "/own"}) == {"LD_LIBRARY_PATH": "/own:/usr/local/nvidia/lib64"}
    assert access.env_over({"LD_LIBRARY_PATH": ""}) == access.env
    a_library(driver / "mine/libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver / "mine"))
    access = gpu_access([], dev)
    assert isinstance(access, GpuAccess)
    assert {bind.source for bind in access.binds if "libcuda.so" in bind.destination} == {
        driver / "mine/libcuda.so.1"
    }


def a_library(path: Path, machine: int | None = None) -> None:
    number = {"x86_64": 62, "aarch64": 183}[os.uname().machine] if machine is None else machine
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + number.to_bytes(2, "little"))


def test_libraries_are_found_without_ldconfig(
    dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on clusters, NixOS and WSL; a stub, and a library of another machine, are none."""
    folders = [tmp_path / name for name in ("cuda/stubs", "mine", "known")]
    for folder in folders:
        a_library(folder / "libcuda.so.1")
    a_library(folders[1] / "libnvidia-ml.so.1", machine=3)
    a_library(folders[2] / "libnvidia-ml.so.1")
    a_library(folders[2] / "libnvidia-tileiras.so.610.43.02")
    a_library(folders[2] / "libcudart.so.12")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(gpu_module, "_LIBRARY_FOLDERS", (str(folders[2]), "/nowhere"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{folders[0]}:{folders[1]}:/nowhere::")
    access = gpu_access([], dev)
    assert isinstance(access, GpuAccess)
    assert {Path(bind.destination).name: bind.source.parent.name for bind in access.binds} == {
        "libcuda.so": "mine",
        "libcuda.so.1": "mine",
        "libnvidia-ml.so.1": "known",
        "libnvidia-tileiras.so.610.43.02": "known",
    }


def test_the_folders_that_are_searched_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/gpus.md").read_text()
    folders = ("/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib/wsl/lib")
    assert folders == gpu_module._LIBRARY_FOLDERS
    assert all(f"`{folder}`" in page for folder in folders)


def test_mig_needs_cdi(dev: Path, driver: Path, tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia/capabilities/gpu0/mig/gi1").mkdir(parents=True)
    assert str(gpu_access([], dev, tmp_path)).startswith("MIG needs CDI: ")


@pytest.mark.parametrize(
    ("node", "named"), [("dxg", "a GPU in WSL needs CDI: "), ("nvmap", "a GPU of a Jetson board needs CDI: ")]
)
def test_other_kinds_of_machine_need_cdi(tmp_path: Path, driver: Path, node: str, named: str) -> None:
    """In WSL there is no /dev/nvidia0; on a Jetson it is for the screen."""
    for name in ("nvidia0", "nvidiactl"):
        (tmp_path / name).symlink_to("/dev/zero")
    assert str(gpu_access([], tmp_path)).startswith(f"{tmp_path}/nvidia-uvm is missing")
    (tmp_path / node).symlink_to("/dev/zero")
    assert str(gpu_access([], tmp_path)).startswith(named)
    (driver / "bin/ldconfig").write_text("#!/bin/sh\n")  # another maker's GPU in WSL
    assert str(gpu_access([], tmp_path)).startswith(f"{tmp_path}/nvidia-uvm is missing")


def test_the_caller_s_choice_of_gpus_is_passed_on(
    dev: Path, driver: Path, cdi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    for access in (gpu_access([], dev), found(cdi)):
        assert isinstance(access, GpuAccess)
        assert access.env["CUDA_VISIBLE_DEVICES"] == "1"
    # Slurm's for a job without GPUs; an invalid one hides those after it (CUDA C++ Programming Guide).
    for hidden in ("", "-1", "NoDevFiles", "none", "-1,0"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        expected = f"CUDA_VISIBLE_DEVICES is {hidden!r}, which hides all GPUs of this machine"
        assert gpu_access([cdi], dev) == expected
    for beyond in ("2,0", "9" * 5000):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", beyond)
        for folders in ([], [cdi]):
            assert gpu_access(folders, dev) == (
                f"CUDA_VISIBLE_DEVICES is {beyond[:100]!r}, but this machine has 2 GPUs, counted from 0"
            )


def test_a_cache_that_is_older_than_the_driver(dev: Path, driver: Path) -> None:
    program = driver / "bin/ldconfig"
    program.write_text(program.read_text().replace(str(driver), "/nowhere"))
    access = gpu_access([], dev)
    assert isinstance(access, str)
    assert "libcuda.so.1 was not found by ldconfig" in access


def test_folders_that_the_dynamic_linker_leaves_out(
    dev: Path, driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_library(driver / "mine/libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/{'x' * 300};{driver / 'mine'}:/nowhere")
    access = gpu_access([], dev)
    assert isinstance(access, GpuAccess)
    sources = {bind.destination: bind.source for bind in access.binds}
    assert sources["/usr/local/nvidia/lib64/libcuda.so.1"] == driver / "mine/libcuda.so.1"


@pytest.mark.parametrize(
    ("gone", "reason"),
    [
        (["nvidia0", "nvidia1"], "no NVIDIA GPU on this machine"),
        (["nvidia-uvm"], "nvidia-modprobe -u -c0 loads it"),
        (["nvidiactl"], "nvidiactl is missing: nobody has started the driver"),
    ],
)
def test_a_missing_node_is_a_reason(dev: Path, driver: Path, gone: list[str], reason: str) -> None:
    for name in gone:
        (dev / name).unlink()
    access = gpu_access([], dev)
    assert isinstance(access, str)
    assert reason in access


def test_a_node_that_the_user_may_not_open_is_named(
    dev: Path, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a site gives GPUs to the members of a group alone; root may open everything."""
    denied = {"nvidia1"}
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name not in denied)
    assert isinstance(gpu_access([], dev), GpuAccess), "the other may be used"
    denied.add("nvidia0")
    assert str(gpu_access([], dev)).startswith(f"you may not read and write {dev}/nvidia0: ")
    denied.clear()
    denied.add("nvidiactl")
    assert str(gpu_access([], dev)).startswith(f"you may not read and write {dev}/nvidiactl: ")


def test_cuda_does_not_count_a_gpu_that_the_user_may_not_open(
    dev: Path, driver: Path, cdi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = {"nvidia0"}
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name not in denied)
    names = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")
    nodes = [{"path": f"/dev/{name}", "hostPath": str(dev / name)} for name in names]
    (cdi / "nvidia.json").write_text(json.dumps(a_spec(deviceNodes=nodes)))
    for folders in ([], [cdi]):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        assert isinstance(gpu_access(folders, dev), GpuAccess)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        assert gpu_access(folders, dev) == (
            "CUDA_VISIBLE_DEVICES is '1', but you may open 1 of this machine's 2 GPUs, counted from 0"
        )
        denied.clear()
        assert isinstance(gpu_access(folders, dev), GpuAccess)
        denied.add("nvidia0")


def test_a_node_of_a_cdi_file_that_the_user_may_not_open(
    cdi: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = {"nvidia1"}
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name not in denied)
    names = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-modeset")
    (dev / "nvidia-modeset").symlink_to("/dev/zero")
    nodes = [{"path": f"/dev/{name}", "hostPath": str(dev / name)} for name in names]
    access = found(cdi, a_spec(deviceNodes=nodes))
    assert not_there(access) is None, "the other may be used"
    denied.add("nvidia0")
    fault = not_there(access)
    assert fault is not None
    assert fault.message.startswith(f"you may not read and write {dev}/nvidia0: ")
    assert "nvidia-ctk" not in fault.hint, "it would write the same again"
    denied.clear()
    denied.add("nvidia-uvm")
    assert str(not_there(access)).startswith(f"you may not read and write {dev}/nvidia-uvm: ")


@pytest.mark.parametrize("gone", ["nvidiactl", "nvidia-uvm"])
def test_a_cdi_file_that_lacks_a_node_of_the_driver(cdi: Path, dev: Path, gone: str) -> None:
    """`nvidia-ctk` leaves out what is missing when it runs (NVIDIA/nvidia-container-toolkit#50)."""
    names = [name for name in ("nvidia0", "nvidiactl", "nvidia-uvm") if name != gone]
    nodes = [{"path": f"/dev/{name}", "hostPath": str(dev / name)} for name in names]
    hook = {"hookName": "createContainer", "path": str(cdi / "nvidia-cdi-hook")}
    Path(hook["path"]).write_text("")
    lacks = f"the CDI file for nvidia.com/gpu names no /dev/{gone}, which every CUDA program opens"
    for hooks in ([], [hook]):
        fault = not_there(found(cdi, a_spec(deviceNodes=nodes, hooks=hooks)))
        assert fault is not None
        assert fault.message == lacks
        assert "nvidia-ctk cdi generate" in fault.hint
    # Another's hook may make it, and other kinds of machine have other nodes.
    other = {"hookName": "prestart", "path": str(cdi / "nvidia-container-runtime-hook")}
    Path(other["path"]).write_text("")
    access = found(cdi, a_spec(deviceNodes=nodes, hooks=[hook, other]))
    assert not_there(access) is None
    assert not_known(access) == f"{lacks}; a hook of that file may add it"
    for path in ("/dev/nvmap", "/dev/dxg", "/dev/nvhost-gpu"):
        assert not_there(found(cdi, a_spec(deviceNodes=[*nodes, {**ZERO, "path": path}]))) is None


def test_a_cdi_file_without_the_driver_s_library(cdi: Path, dev: Path, tmp_path: Path) -> None:
    """It need not be wrong: the library may be in the image, or be added by a hook."""
    names = ("nvidia0", "nvidiactl", "nvidia-uvm")
    nodes = [{"path": f"/dev/{name}", "hostPath": str(dev / name)} for name in names]
    (folder := tmp_path / "driver/lib64").mkdir(parents=True)
    for source, target, known in (
        (folder, "/usr/local/nvidia/lib64", False),
        (folder / "libcuda.so.550.54", "/usr/lib/libcuda.so.550.54", True),
        (folder / "libcuda.so.550.54", "/usr/lib/wsl/drivers/nv/libcuda.so.1.1", True),
        (folder / "libcuda.so.550.54", "/usr/lib/libnvidia-ml.so.1", False),
        (folder, "/usr/local/nvidia/lib64", True),
        (folder.parent, "/usr/local/nvidia", True),
    ):
        mount = {"hostPath": str(source), "containerPath": target, "options": ["ro", "bind"]}
        access = found(cdi, a_spec(deviceNodes=nodes, mounts=[mount]))
        assert (not_known(access) is None) == known, target
        (folder / "libcuda.so.550.54").touch()
    without = not_known(found(cdi, a_spec(deviceNodes=nodes)))
    assert without is not None
    assert without.startswith("the CDI file for nvidia.com/gpu mounts no libcuda.so.1; ")


def test_a_missing_driver_is_a_reason(dev: Path, driver: Path) -> None:
    program = driver / "bin/ldconfig"
    listing = program.read_text()
    # Where it has no cache, as on NixOS, it fails; a name need not be in UTF-8.
    for text in (listing.replace("libcuda.so.1", "libother.so.1"), "#!/bin/sh\nexit 1\n"):
        program.write_text(text)
        access = gpu_access([], dev)
        assert isinstance(access, str)
        assert "libcuda.so.1 was not found by ldconfig" in access
    program.write_bytes(listing.encode().replace(b"/second/libc.so", b"/second/\xe9/libc.so"))
    assert isinstance(gpu_access([], dev), GpuAccess)


def test_podman_gets_the_choice_and_keeps_the_image_s_own_folders(
    dev: Path, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = driver / "bin/podman"
    program.write_text('#!/bin/sh\necho \'["A=1", "LD_LIBRARY_PATH=/own"]\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr(podman_options, "has_cdi", lambda: False)
    monkeypatch.setattr(podman_options, "gpu_access", lambda: gpu_access([], dev))
    options = podman_options.gpu_options(str(program), "sha256:0")
    assert "--security-opt=label=disable" in options  # SELinux denies both nodes and libraries
    assert "--env=LD_LIBRARY_PATH=/own:/usr/local/nvidia/lib64" in options
    assert "--env=CUDA_VISIBLE_DEVICES=1" in options
    monkeypatch.setattr(podman_options, "has_cdi", lambda: True)
    assert podman_options.gpu_options(str(program), "sha256:0") == [
        *("--security-opt=label=disable", "--device=nvidia.com/gpu=all", "--env=CUDA_VISIBLE_DEVICES=1")
    ]


# --- handed in, for real ---


@pytest.fixture
def image(tmp_path: Path) -> tuple[OciEngine, str]:
    needs("crun")
    home = Home(tmp_path / "home")
    return OciEngine(Host(home, CONSOLE)), small_image(home)


def shell(engine: OciEngine, digest: str, script: str, gpu: GpuAccess | None, **env: str) -> int:
    return engine.run(digest, ["bash", "-c", script], RunOptions(env=env, gpu=gpu))


@pytest.mark.core
def test_cdi_reaches_the_program(
    image: tuple[OciEngine, str], cdi: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library, socket = tmp_path / "libcuda.so.550", tmp_path / "socket"
    library.write_text("the driver\n")
    socket.write_text("")
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\ncat > {tmp_path}/state.json\necho "$HOOK $*" > {tmp_path}/called\n')
    hook.chmod(0o755)
    spec = {
        **a_spec(),
        "containerEdits": {
            "env": ["GIVEN=by CDI", "MINE=its own"],
            "additionalGids": [4711],
            "mounts": [
                {
                    "hostPath": "tmpfs",
                    "containerPath": "/run/memory",
                    "type": "tmpfs",
                    "options": ["size=16m", "mode=700"],
                },
                {
                    "hostPath": str(library),
                    "containerPath": "/usr/lib/gpu/libcuda.so.1",
                    "options": ["ro", "bind"],
                },
                {"hostPath": str(socket), "containerPath": "/run/gpu", "options": ["bind"]},
            ],
            "hooks": [
                {
                    "hookName": "createContainer",
                    "path": str(hook),
                    "args": ["hook", "one", "two"],
                    "env": ["HOOK=called", f"PATH={os.environ['PATH']}"],
                }
            ],
        },
        "devices": [
            {
                "name": "all",
                "containerEdits": {
                    "deviceNodes": [
                        {"path": "/dev/nvidia0", "hostPath": "/dev/zero"},
                        {"path": "/dev/nvidia-caps/cap1", "hostPath": "/dev/null"},
                    ]
                },
            }
        ],
    }
    access = found(cdi, spec)
    script = """
    read -r -d '' -n 1 x < /dev/nvidia0 && echo zero=${#x}
    echo gone > /dev/nvidia-caps/cap1 && cat /dev/nvidia-caps/cap1
    cat /usr/lib/gpu/libcuda.so.1
    echo written > /run/gpu
    echo x 2>/dev/null > /usr/lib/gpu/libcuda.so.1 || echo read-only
    echo $GIVEN $MINE $CUDA_VISIBLE_DEVICES
    [[ $(< /proc/mounts) == *"tmpfs /run/memory tmpfs "*"size=16384k,mode=700"* ]] && echo in memory
    echo kept > /run/memory/f && cat /run/memory/f
    id -G
    """
    access = replace(access, env={**access.env, "CUDA_VISIBLE_DEVICES": "0"})
    # What `-e` gives outranks it.
    assert shell(*image, script, access, MINE="by name", CUDA_VISIBLE_DEVICES="1") == 0
    *lines, groups = capfd.readouterr().out.splitlines()
    assert lines == ["zero=0", "the driver", "read-only", "by CDI by name 1", "in memory", "kept"]
    # An ordinary user cannot take a group.
    assert ("4711" in groups.split()) == (os.geteuid() == 0)
    assert socket.read_text() == "written\n"
    assert (tmp_path / "called").read_text() == "called one two\n"
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["bundle"].startswith(str(tmp_path / "home"))
    # Without it nothing of all that is there.
    assert shell(*image, "test ! -e /dev/nvidia0 && test ! -e /run/gpu && echo ${GIVEN-unset}", None) == 0
    assert capfd.readouterr().out == "unset\n"


@pytest.mark.core
def test_nodes_and_libraries_reach_the_program(
    image: tuple[OciEngine, str], dev: Path, driver: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    access = gpu_access([], dev)
    assert isinstance(access, GpuAccess)
    script = (
        "cd /dev; echo nvidia*; echo $LD_LIBRARY_PATH; cd ${LD_LIBRARY_PATH#*:}; echo *; cat libcuda.so.1; "
        "read -rd '' < /dev/nvidia0"
    )
    assert shell(*image, script, access, LD_LIBRARY_PATH="/own") == 0
    assert capfd.readouterr().out.splitlines() == [
        "nvidia-uvm nvidia0 nvidia1 nvidiactl",
        "/own:/usr/local/nvidia/lib64",
        "libcuda.so libcuda.so.1 libnvcuvid.so.1 libnvidia-gpucomp.so.550.54 libnvidia-nvvm70.so.4",
        "libcuda.so.1",
    ]


@pytest.mark.core
def test_a_recorded_program_has_not_written_the_driver(
    image: tuple[OciEngine, str], dev: Path, driver: Path, tmp_path: Path
) -> None:
    """For each library the runtime makes an empty file where it mounts it: seen on an H100, 33 of them."""
    access = gpu_access([], dev)
    assert isinstance(access, GpuAccess)
    engine, digest = image
    bound = [Bind(source=tmp_path, destination="/data"), Bind(source=Path("/etc/hostname"), destination="/h")]
    argv = ["bash", "-c", "echo x > /own; : > /empty; : > $LD_LIBRARY_PATH/mine"]
    run = engine.recorded(digest, argv, RunOptions(gpu=access, binds=bound))
    (folder := tmp_path / "run").mkdir()
    found = read_run(run(folder, {}, None), HowToRun(), folder, (0.0, 1.0))
    assert [file.path for file in found.files] == ["/empty", "/own", "/usr/local/nvidia/lib64/mine"]


@pytest.mark.core
def test_a_hook_that_fails_is_the_host_s_fault(image: tuple[OciEngine, str], cdi: Path) -> None:
    hook = {"hookName": "createContainer", "path": "/bin/false"}
    access = found(cdi, a_spec(deviceNodes=[ZERO], hooks=[hook]))
    with pytest.raises(HostError, match="could not be started in the image"):
        shell(*image, "true", access)


@pytest.mark.core
def test_a_hook_that_starts_within_the_container_is_one_of_the_container(
    image: tuple[OciEngine, str], cdi: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "hook"
    script.write_text("#!/bin/bash\n[ -e /only-here ] && : > /tmp/called\n")
    script.chmod(0o755)
    mount = {"hostPath": str(script), "containerPath": "/only-here", "options": ["ro", "bind"]}
    hook = {"hookName": "startContainer", "path": "/only-here"}
    nodes = [ZERO, *({**ZERO, "path": f"/dev/{name}"} for name in ("nvidiactl", "nvidia-uvm"))]
    access = found(cdi, a_spec(deviceNodes=nodes, mounts=[mount], hooks=[hook]))
    assert not_there(access) is None
    assert shell(*image, "test -e /tmp/called && echo called", access) == 0
    assert capfd.readouterr().out == "called\n"
    access = found(cdi, a_spec(deviceNodes=[ZERO], hooks=[hook]))
    with pytest.raises(HostError, match="the image has no /only-here, which the CDI file for"):
        shell(*image, "true", access)
    access = found(cdi, a_spec(deviceNodes=[ZERO], hooks=[{**hook, "path": "/bin/id", "args": ["id"]}]))
    assert shell(*image, "true", access) == 0


@pytest.mark.core
@pytest.mark.parametrize(
    ("place", "hidden"),
    [
        ("/usr/bin", True),
        ("/usr", True),
        ("/bin", True),
        ("/usr/bin/cat", True),
        ("//bin/./cat", True),
        ("/usr/bin/nvidia-smi", False),
        ("/usr/share/new", False),
        ("/usr/share/glvnd/10_nvidia.json", False),
        ("/usr/lib/libcuda.so.1", False),
        ("/usr/lib/committed.so", False),
    ],
)
def test_a_mount_may_hide_no_file_of_the_image(tmp_path: Path, cdi: Path, place: str, hidden: bool) -> None:
    needs("crun")
    home = Home(tmp_path / "home")
    files: dict[str, Any] = {
        "usr/share/glvnd/10_nvidia.json": b"{}",
        "usr/lib/libcuda.so.1": b"of the base image",
        "usr/lib/committed.so": b"",
    }
    image = OciEngine(Host(home, CONSOLE)), small_image(home, **files)
    (tmp_path / "source").mkdir()
    mount = {"hostPath": str(tmp_path / "source"), "containerPath": place, "options": ["ro", "bind"]}
    if place.endswith((".so", ".1", ".json", "cat", "smi")):
        mount["hostPath"] = "/etc/hostname"
    for mounts in ([mount], [{**mount, "type": "tmpfs", "options": []}]):
        access = found(cdi, a_spec(deviceNodes=[ZERO], mounts=mounts))
        if hidden:
            with pytest.raises(HostError, match=f"mounts something over {place}, which the image has"):
                shell(*image, "true", access)
        elif mounts == [mount]:
            assert shell(*image, "true", access) == 0


@pytest.mark.core
def test_a_stale_file_is_the_host_s_fault(image: tuple[OciEngine, str], cdi: Path) -> None:
    """As after an update of the driver: the file names a library that is gone."""
    mount = {"hostPath": "/nowhere/libcuda.so.1", "containerPath": "/x", "options": ["ro", "bind"]}
    access = found(cdi, a_spec(deviceNodes=[ZERO], mounts=[mount]))
    with pytest.raises(HostError, match="/nowhere/libcuda"):
        shell(*image, "true", access)


# --- auto, require, off: the self-test's own program is a script that says what it was given ---

PROGRAM = """#!/bin/bash
while [ "$1" != --device ]; do shift; done
test -e /dev/nvidia0 && given=true || given=false
report=$(cat /opt/reprobuild/report.json)
echo "${report/why/$2 $given}"
"""


@pytest.fixture
def tested(tmp_path: Path) -> tuple[OciEngine, str]:
    needs("crun")
    home = Home(tmp_path / "home")
    checks = (a_check(), a_check(device="cuda"))
    report = json.dumps(a_report(*checks, gpu={"tested": True, "reason": "why"})).encode()
    files: dict[str, Any] = {"opt/venv/bin/python": PROGRAM.encode(), "opt/reprobuild/report.json": report}
    return OciEngine(Host(home, CONSOLE)), small_image(home, **files)


@pytest.mark.core
@pytest.mark.parametrize(
    ("gpu", "there", "reason"),
    [
        ("auto", True, "auto true"),
        ("require", True, "cuda true"),
        ("off", True, "turned off by --gpu off"),
        (
            "auto",
            False,
            "no NVIDIA GPU on this machine (no /nowhere/nvidia0, and no CDI file for nvidia.com/gpu)",
        ),
    ],
)
def test_the_self_test_gets_what_was_asked_for(
    tested: tuple[OciEngine, str],
    cdi: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpu: Gpu,
    there: bool,
    reason: str,
) -> None:
    access = found(cdi, a_spec(deviceNodes=[ZERO]))
    for module in (gpu_module, embedded):
        monkeypatch.setattr(
            module, "gpu_access", lambda: access if there else gpu_access([], Path("/nowhere"))
        )
    engine, digest = tested
    assert run_selftest(engine.runner(digest), program=selftest_files(), gpu=gpu).gpu_reason == reason


@pytest.mark.core
def test_a_gpu_that_is_required_and_missing(
    tested: tuple[OciEngine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (gpu_module, embedded):
        monkeypatch.setattr(module, "gpu_access", lambda: gpu_access([], Path("/nowhere")))
    engine, digest = tested
    with pytest.raises(HostError, match="the self-test requires a GPU: no NVIDIA"):
        run_selftest(engine.runner(digest), program=selftest_files(), gpu="require")
