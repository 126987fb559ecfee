"""The embedded engine: builds an OCI image straight from the store and runs it, with no daemon.

The image is in an OCI layout; its layers are unpacked when it is first run, each once for all images.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import assets
from ..errors import HostError
from ..fetch.arrivals import Arrivals
from ..fetch.store import Store
from ..host import process, sandbox
from ..host.console import size_text
from ..host.host import Host
from ..host.limits import Limits, default_processes, guarded
from ..host.machine import identity
from ..host.workers import while_wanted, workers
from ..layers import unpacked_layers
from ..layers.unpacked_content import distrust_changed
from ..lock.layer_record import LayerRecord
from ..lock.model import Lock
from ..oci.blobs import damaged
from ..oci.file_tree import nothing
from ..oci.store import Image, ImageStore
from ..oci.tar_writer import Record
from ..render.image_config import image_config
from ..request.image_layout import SITE_PREFIX
from ..twice.recorded_run import RanProgram, RecordedRun
from .cdi import GpuAccess
from .gpu import gpu_access, gpu_missing, misfit
from .passwd import user_of
from .protocols import EngineName, RunOptions, WriteContext, require_gpu
from .twice_mounts import IN_CONTAINER, PYTHON, environment, launched, recorder_binds, site_packages


class OciEngine:
    """Builds, keeps and runs images below a `Home`."""

    kind: EngineName = "oci"
    built_by: EngineName = "oci"

    def __init__(self, host: Host, *, runs: bool = True, record: LayerRecord | None = None) -> None:
        """``runs``: whether what it builds is then run here, so that its files are laid out on the way.

        ``record``: of layers that a registry gave. It takes those that it has not built itself.
        """
        self._host, self._runs, self._record = host, runs, record
        self.images = ImageStore(host)

    def check(self, *, gpu: bool) -> None:
        """Raise `HostError` if no container runtime is found, or ``gpu`` is set without a GPU."""
        if gpu:
            require_gpu(gpu_missing())
        sandbox.runtime()

    def build(
        self,
        lock: Lock,
        context: WriteContext,  # noqa: ARG002 -- it makes layers itself
        arrivals: Arrivals | None = None,
    ) -> str:
        """Build the image of a lock, while its files arrive; return its digest.

        The image has no name. Raises `BuildError`, `HostError`, `StorageError`, and `Stopped` as
        `Arrivals.wait`.
        """
        from ..layers.builder import build_layers  # noqa: PLC0415 -- a `run` need not wait for it
        from ..layers.image_documents import documents  # noqa: PLC0415 -- as above

        store = Store(self._host.home)
        layers = build_layers(lock, store, self._host, arrivals, lay_out=self._runs, record=self._record)
        image = documents(lock, image_config(lock), [(layer.title, layer.cached.layer) for layer in layers])
        return self.images.add(image)

    def runner(self, digest: str) -> OciRunner:
        """Return what runs programs in an image for the self-test."""
        return OciRunner(self._host, self.images, digest)

    def verify_unpacked(self, digest: str, files: Mapping[str, Record]) -> None:
        """Hash what an image's programs run from, and unpack again the layers that differ from its files."""
        verify_unpacked(self._host, self.images, digest, files)

    def run(
        self, reference: str, argv: Sequence[str], options: RunOptions, records: Path | None = None
    ) -> int:
        """Run a command in the foreground, or the image's own when ``argv`` is empty; return its exit status.

        It gets the signals that this process gets, and the terminal, if standard input and output are one; a
        negative status is a signal's. What it writes outside ``options.binds`` is lost afterwards.
        ``records``: an empty folder for what the recorder of ``twice`` keeps, which it then gets too.
        """
        image = self.images.find(reference)
        limits = _at_most(options.limits)
        with self._unpacked(image) as layers, self._host.home.scratch("run") as scratch:
            if records is not None:
                env = {**options.env, "REPROBUILD_TWICE": IN_CONTAINER}
                binds = [*options.binds, *recorder_binds(records, layers, env)]
                options = replace(options, env=env, binds=binds)
            task = self._task(image, argv, options, scratch, layers)
            task = replace(task, terminal=os.isatty(0) and os.isatty(1))
            task = _as_user(task, options.user or self._config(image.digest).get("User"), layers)
            command = sandbox.prepare(scratch, layers, _with_init(task, layers), limits=limits)
            with guarded(limits, by_the_kernel=True) as guard:
                # On a terminal the runtime must stay in the foreground; there, Ctrl-C goes through it.
                status = process.call(
                    guard.command(command), cwd=scratch, own_group=not task.terminal, deliver=sandbox.deliver
                )
                exceeded = guard.memory_exceeded() if status else ""
            if exceeded:
                self._host.console.warn(
                    f"a process was killed, since the run took more than {exceeded} of memory (--memory)"
                )
            if status > 0:
                sandbox.check_started(scratch, task)
            if status:
                unpacked_layers.drop_unreadable(self._host, layers, status)
            return status

    def recorded(self, reference: str, argv: Sequence[str], options: RunOptions) -> RecordedRun:
        """Return what runs a command as `run` does, under the recorder of ``twice``, its output kept.

        Each run writes into a view of its own of the folders that ``options.binds`` let it write to.
        """
        image = self.images.find(reference)
        own = [replace(bind, copied=True) if bind.writable else bind for bind in options.binds]
        limits = _at_most(options.limits)

        def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
            with self._unpacked(image) as layers:
                env = {**options.env, **settings, "REPROBUILD_TWICE": IN_CONTAINER}
                recorder = recorder_binds(folder, layers, env)
                task = self._task(
                    image,
                    launched(argv, settings, site_packages(layers) and PYTHON),
                    replace(options, env=environment(env), binds=[*own, *recorder]),
                    folder,
                    layers,
                )
                task = _as_user(task, options.user or self._config(image.digest).get("User"), layers)
                command = sandbox.prepare(folder, layers, _with_init(task, layers), limits=limits)
                status: int | None
                with guarded(limits, by_the_kernel=True) as guard:
                    try:
                        done = process.run(command, cwd=folder, timeout=seconds, check=False, guard=guard)
                        status, out, err = done.returncode, done.stdout, done.stderr
                    except process.ProcessTimeout:
                        status, out, err = None, b"", b""
                if status:
                    sandbox.check_started(folder, task)
                    unpacked_layers.drop_unreadable(self._host, layers, status)
                written = [(folder / "upper", "/"), *sandbox.written_over(folder, task.binds)]
                points = [bind.destination for bind in task.binds]
                return RanProgram(status=status, stdout=out, stderr=err, written=written, mount_points=points)

        return run

    def _task(
        self, image: Image, argv: Sequence[str], options: RunOptions, folder: Path, layers: Sequence[Path]
    ) -> sandbox.Task:
        config = self._config(image.digest)
        resolver = Path("/etc/resolv.conf")
        task = sandbox.Task(
            argv=list(argv) or config["Cmd"],
            env=_environment(config) | dict(options.env),
            cwd=options.workdir or config["WorkingDir"],
            binds=[
                sandbox.Bind(source=_hosts(folder, network=options.network), destination="/etc/hosts"),
                *(
                    sandbox.Bind(source=p.resolve(), destination=str(p))
                    for p in (resolver,)
                    if options.network and p.exists()
                ),
                *options.binds,
            ],
            writable=True,
            network="host" if options.network else "none",
        )
        if options.gpu is None:
            return task
        # What the user gives by name outranks the machine's.
        given = options.env.keys() - {"LD_LIBRARY_PATH"}
        env = {name: value for name, value in options.gpu.env.items() if name not in given}
        return _with_gpu(task, replace(options.gpu, env=env), layers)

    def _config(self, digest: str) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.images.config(digest)["config"]
        return config

    @contextmanager
    def _unpacked(self, image: Image) -> Iterator[list[Path]]:
        with unpacked(self._host, self.images, image.digest) as layers:
            yield layers


def _hosts(folder: Path, *, network: bool) -> Path:
    """Write the names that a program can look up: this machine's with its network, and always its own.

    torchrun and other launchers look up the container's own name, and wait for it:
    https://github.com/pytorch/pytorch/issues/150532
    """
    own = f"127.0.0.1\tlocalhost {sandbox.HOSTNAME}\n::1\tlocalhost ip6-localhost ip6-loopback\n"
    machine = Path("/etc/hosts")
    theirs = machine.read_text(errors="surrogateescape") if network and machine.exists() else ""
    path = folder / "hosts"
    path.write_text(own + theirs, errors="surrogateescape")
    path.chmod(0o644)  # whatever user the program runs as
    return path


class OciRunner:
    """Runs programs in one image as the self-test needs it: no network, no capability, nothing writable."""

    def __init__(self, host: Host, images: ImageStore, digest: str) -> None:
        self._host, self._images = host, images
        self.digest = digest

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        """Run to the end; see `selftest.run.Runner`.

        After a failure the unpacked files are compared with the image's; it counts only if they are equal.
        """
        try:
            done = self._run(argv, timeout=timeout, gpu=gpu)
        except HostError:  # a program that cannot be started may be a damaged one
            if not self._were_changed():
                raise
        else:
            if done.returncode == 0 or not self._were_changed():
                return done
        return self._run(argv, timeout=timeout, gpu=gpu)

    def _were_changed(self) -> bool:
        files = self._images.tree(self.digest, self.digest, nothing).files
        return verify_unpacked(self._host, self._images, self.digest, files)

    def _run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        config = self._images.config(self.digest)["config"]
        task = sandbox.Task(argv=argv, env=_environment(config), cwd=config["WorkingDir"])
        access = gpu_access() if gpu else ""
        with (
            unpacked(self._host, self._images, self.digest) as layers,
            self._host.home.scratch("selftest") as scratch,
        ):
            if not isinstance(access, str):
                task = _with_gpu(task, access, layers)
            task = _as_user(task, config.get("User"), layers)
            done = sandbox.run(scratch, layers, task, timeout=timeout)
            if done.returncode != 0:
                unpacked_layers.drop_unreadable(self._host, layers, done.returncode)
            return done

    def gpu_missing(self) -> str | None:
        """Return why no GPU can be passed in, or None."""
        return gpu_missing()

    def machine(self) -> str | None:
        """Return what names this machine."""
        return identity()


@contextmanager
def unpacked(host: Host, images: ImageStore, digest: str) -> Iterator[list[Path]]:
    """Yield the folders of an image's layers, lowest first, unpacking those that are not yet."""
    layers = images.layers(digest)
    missing = [(blob, diff) for blob, diff in layers if not (host.home.folder("roots") / diff[7:]).is_dir()]
    sizes = [_size(blob) for blob, _ in missing]
    with host.console.progress("unpack", sum(sizes)) as advance, workers(2) as pool:
        folders = list(
            pool.map(lambda y: unpacked_layers.unpack(host, y[0], y[1], while_wanted(advance)), layers)
        )
    with unpacked_layers.in_use(folders):
        if missing and (freed := unpacked_layers.keep_within(host.home)):
            most = size_text(unpacked_layers.MOST_BYTES)
            host.console.step(f"removed {size_text(freed)} of unpacked layers, to keep them within {most}")
        yield folders


def verify_unpacked(host: Host, images: ImageStore, digest: str, files: Mapping[str, Record]) -> bool:
    """Hash the unpacked files of an image; unpack again, and return True, where they are not ``files``."""
    with unpacked(host, images, digest) as layers:
        changed = distrust_changed(host, layers, files)
    if changed:
        with unpacked(host, images, digest):
            pass
    return changed


def _size(blob: Path) -> int:
    try:
        return blob.stat().st_size
    except FileNotFoundError:
        raise damaged(f"sha256:{blob.name}", "it is missing") from None


def _at_most(limits: Limits | None) -> Limits:
    limits = limits or Limits()
    return limits if limits.processes is not None else replace(limits, processes=default_processes())


def _environment(config: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in config["Env"])


def _as_user(task: sandbox.Task, user: str | None, layers: Sequence[Path]) -> sandbox.Task:
    who = user_of(user or "0:0", layers)
    # The runtimes themselves disagree about a user that the image does not have.
    env = {"HOME": who.home, **task.env}
    if not who.named:
        # torch 2.8 to 2.12 ask for the name as soon as an optimizer steps, and fail without one; this is what
        # later ones take: https://github.com/pytorch/pytorch/issues/140765
        env.setdefault("USER", f"uid_{who.ids[0]}")
    return replace(task, user=who.ids, all_ids=who.ids != (0, 0), env=env)


def _with_init(task: sandbox.Task, layers: Sequence[Path]) -> sandbox.Task:
    """Start the image's Python first, where it has one, which passes signals on: see in_image/init.py."""
    python = f"{SITE_PREFIX}/bin/python3"
    if not any((layer / python.lstrip("/")).is_symlink() for layer in layers):
        return task
    return replace(task, argv=[python, "-I", "-S", "-c", assets.in_image("init.py").decode(), *task.argv])


def _with_gpu(task: sandbox.Task, gpu: GpuAccess, layers: Sequence[Path]) -> sandbox.Task:
    if (reason := misfit(gpu, layers)) is not None:
        raise HostError(reason, hint="correct the file, or use --gpu off")
    return replace(
        task,
        env={**task.env, **gpu.env_over(task.env)},
        binds=[*task.binds, *gpu.binds],
        devices=[*task.devices, *gpu.devices],
        hooks=gpu.hooks,
        folders={**task.folders, **gpu.folders},
        # An ordinary user cannot take a group: it has those that the administrator gave.
        groups=gpu.groups if os.geteuid() == 0 else (),
    )
