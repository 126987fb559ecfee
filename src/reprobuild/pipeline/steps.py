"""The steps in their order: lock, fetch, build, self-test and tag; and, separately, render."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..engines.embedded import OciEngine
from ..engines.engine_errors import refuse_stranger
from ..engines.protocols import Engine, Images
from ..engines.tag import tag
from ..errors import HostError, LockError, ResolveError
from ..fetch.arrivals import Arrivals
from ..fetch.debian_mirrors import package_urls
from ..fetch.scheduler import fetch, fetching
from ..fetch.store import Store
from ..host import namespaces, process
from ..host.home import Home, atomic_write, make_folders, storage_errors
from ..host.host import Host
from ..host.limits import refuse_too_little
from ..layers.builder import debian_records, write_conda_tar, write_system_tar
from ..layers.package_files import check_wheels
from ..layers.registry_pull import take_layers
from ..lock.age_gap import age_gap
from ..lock.compilers import compiler_hint
from ..lock.imported_hashes import check_hashes
from ..lock.layer_record import LayerRecord
from ..lock.merge import agreed_pins
from ..lock.model import Lock
from ..lock.own_files import NAME as OWN_FILES
from ..lock.platforms import dump_locks
from ..lock.reader import parse_lock
from ..lock.recorded_kernels import unusable_records
from ..net.session import without_credentials
from ..oci.file_tree import tree_digest
from ..oci.registry.client import Target
from ..oci.store import ImageStore, image_name
from ..render.dockerfile import (
    CONDA_TAR,
    DEBIAN_TAR,
    PYTHON_TAR,
    DebianRoot,
    Rendered,
    check_self_contained,
    render,
    render_self_contained,
)
from ..render.image_config import default_image_name
from ..render.own_files import other_files, own_files, selftest_files
from ..request.image_layout import OWN_FOLDER
from ..request.model import Request
from ..request.profiles import variables
from ..resolve.package_facts import facts_of_wheels
from ..resolve.resolution import Hints
from ..resolve.resolver import Upgrade, resolve_platforms
from ..selftest.last_report import circumstances, forget, keep, kept
from ..selftest.report import Mode, SelfTestReport
from ..selftest.run import SECONDS, SECONDS_OF_PACKAGE, Gpu, run_selftest
from ..sources.direct_source import bring
from ..sources.workshop import build_locked, missing_wheels, take_over_wheels, to_fetch
from ..verify.evidence.create_documents import document_image
from ..verify.evidence.document_store import mark_elsewhere
from ..verify.evidence.statements import Subject
from .preflight.doctor import examine_gpus
from .preflight.emulation import check_platform
from .preflight.image_needs import needs_of
from .workspace import Env, conflicts_of, lock_for, read_lock, read_locks

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

    from ..verify.evidence.keys import CommandSigner


@dataclass(frozen=True, slots=True)
class Made:
    """An image that has passed and been named."""

    name: str
    digest: str
    report: SelfTestReport


@dataclass(frozen=True, slots=True)
class SharedLayers:
    """A repository with layers, and the record of what they are."""

    source: Target
    record: LayerRecord


def lock_env(env: Env, upgrade: Upgrade, host: Host) -> tuple[tuple[Lock, ...], tuple[Lock, ...]]:
    """Resolve a request and write its locks; return them and the earlier ones, whose pins are preferred."""
    before, upgrade = _before(env, upgrade, host)
    moves = not before or upgrade.everything or OWN_FILES in upgrade.packages
    own = (None if moves else before[0].own_files) or own_files()
    upgrade = replace(upgrade, packages=tuple(name for name in upgrade.packages if name != OWN_FILES))
    hints = Hints(env.hashes, env.pythons, env.order)
    resolve = partial(resolve_platforms, existing=before, upgrade=upgrade, hints=hints, host=host)

    def resolved(request: Request) -> tuple[Lock, ...]:
        try:
            return resolve(request)
        except ResolveError as error:
            error.hint = "\n".join([*env.places_in(error.message), *filter(None, [error.hint])])
            raise

    try:
        locks = resolved(env.request)
    except ResolveError as error:
        if error.cuda is None or not env.cuda_is_open:
            raise
        host.console.step(f"CUDA {error.cuda} in place of {env.request.cuda}, which does not fit the others")
        env = replace(env, request=replace(env.request, cuda=error.cuda))
        locks = resolved(env.request)
    locks = tuple(replace(lock, own_files=own) for lock in locks)
    env.check_python(locks)
    warn_of_other_files(locks[0], host)
    for lock in locks:
        check_hashes(lock, env.hashes)
    # A request from flags is written only now, so that one that cannot be locked leaves nothing behind.
    if env.save():
        host.console.step(f"wrote {env.file}")
    atomic_write(env.lock_file, dump_locks(locks).encode())
    # Once: who has read it and locks again has decided.
    if (hint := compiler_hint(locks[0])) and not any(map(compiler_hint, before)):
        host.console.step(hint)
    if beyond := env.beyond(locks):
        host.console.step(beyond)
    if not before and (gap := age_gap(locks[0])):
        host.console.warn(gap)
    for line in dict.fromkeys(chain.from_iterable(map(unusable_records, locks))):
        host.console.warn(line)
    return locks, before


def _before(env: Env, upgrade: Upgrade, host: Host) -> tuple[tuple[Lock, ...], Upgrade]:
    """Return the existing locks, and the packages that may change.

    An unreadable one is only an error if pins of it have to stay; of one with the conflicts of a merge, those
    stay that both sides have.
    """
    if not env.lock_file.exists():
        return (), upgrade
    try:
        return read_locks(env.lock_file), upgrade
    except LockError:
        if upgrade.everything:
            return (), upgrade
        if (text := conflicts_of(env.lock_file)) is None:
            raise
    ours, moved = agreed_pins(text, str(env.lock_file))
    packages = sorted(moved - {OWN_FILES})
    what = f"these are resolved again: {', '.join(packages)}" if packages else "they differ in none"
    host.console.step(f"{env.lock_file} has conflicts of a merge; pins that both sides have stay; {what}")
    if OWN_FILES in moved:
        host.console.warn(
            f"{env.lock_file}: the sides of the merge have other files of reprobuild's own; "
            f"the lock now names those of this reprobuild, {own_files().version}"
        )
    return ours, replace(upgrade, packages=(*upgrade.packages, *sorted(moved)))


def lock_of(env: Env, host: Host, platform: str | None = None) -> Lock:
    """Return the lock of a request for a platform; create it if it is missing.

    Raises `LockError` if it belongs to another request.
    """
    if not env.lock_file.exists():
        locks, _ = lock_env(env, Upgrade(), host)
        host.console.step(f"wrote {env.lock_file}")
        return lock_for(locks, platform, str(env.lock_file))
    lock = read_lock(env.lock_file, platform)
    lock.check_for(env.request, str(env.lock_file))
    return lock


def lock_to_build(lock: Lock, host: Host) -> Lock:
    """Return the lock with this reprobuild's own files, which a build here uses.

    The image carries that lock, so what it says of itself is true. Warns where it is not the one given.
    """
    warn_of_other_files(lock, host)
    warn_of_other_variables(lock, host)
    return replace(lock, own_files=own_files())


def warn_of_other_files(lock: Lock, host: Host) -> None:
    """Report a build here that adds other files of reprobuild's own than the lock names."""
    if why := other_files(lock):
        host.console.warn(
            f"{why}. A build here puts in this one's, and its image has another digest; "
            f"`reprobuild lock --upgrade {OWN_FILES}` records them"
        )


def warn_of_other_variables(lock: Lock, host: Host) -> None:
    """Name the variables of a lock that this reprobuild would set otherwise for its request."""
    ours, theirs = variables(lock.request, lock.stack.get("numpy")), lock.variables
    other = [
        f"{name} is {theirs.get(name, 'not set')}, not {ours.get(name, 'not set')}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
    if other:
        more = f", and {len(other) - 3} more" if len(other) > 3 else ""
        host.console.warn(
            f"the lock has other variables than this reprobuild locks for its request: "
            f"{'; '.join(other[:3])}{more}. Another release wrote it, or somebody edited it; "
            "`reprobuild lock` writes them anew"
        )


def make_image(
    lock: Lock,
    name: str | None,
    gpu: Gpu,
    host: Host,
    *,
    engine: Engine | None = None,
    shared: SharedLayers | None = None,
    signer: Signer | CommandSigner | None = None,
) -> Made:
    """Fetch, build, test and name the image of a lock. It gets its name only when it has passed.

    Evidence of that is kept beside it, signed by ``signer`` if there is one.
    """
    engine = engine or OciEngine(host)
    lock = lock_to_build(lock, host)
    check_host(lock)
    check_platform(lock.platform, engine.built_by)
    engine.check(gpu=gpu == "require")
    _check_gpus(lock, gpu, host)
    name = image_name(name or default_image_name(lock))
    refuse_stranger(engine.images, name)
    # Held to the end: until it has its name, `clean` would take the candidate away.
    with host.home.lock("build", host.console):
        taken = shared is not None and take_layers(
            lock, shared.record, shared.source, host, lay_out=engine.kind == "oci"
        )
        with nullcontext(Arrivals()) if taken else obtaining(lock, host) as arrivals:
            digest = engine.build(lock, lambda folder: _fill(lock, render(lock), folder, host), arrivals)
        report = selftest_image(engine, digest, gpu, host, mode="battery", again=False)
        tag(engine.images, digest, name, report)
        facts = facts_of_wheels(lock, host.home)
        document_image(host, lock, _subject(engine, digest), signer, facts)
        if engine.kind != "oci":
            mark_elsewhere(host.home, digest)
    return Made(name, digest, report)


def _subject(engine: Engine, digest: str) -> Subject:
    """Return the digests of an image; Docker and Podman know theirs by one."""
    images = engine.images
    return Subject(
        digest, str(images.manifest(digest)["config"]["digest"]) if isinstance(images, ImageStore) else ""
    )


@contextmanager
def rebuild(lock: Lock, host: Host) -> Generator[tuple[str, ImageStore]]:
    """Build the image of a lock again, in an empty home that is gone in the end; yield its digest and store.

    Downloads are shared, since each is held against its hash; no layer is, and no wheel that was built here
    or that a folder of the user's has: each source package is built.
    """
    check_host(lock)
    check_platform(lock.platform)
    with host.home.scratch("rebuild") as folder:
        (folder / "store").symlink_to(host.home.folder("store"))
        other = Host(Home(folder), host.console)
        with host.home.lock("build", host.console), obtaining(lock, other, anew=True) as arrivals:
            digest = OciEngine(other, runs=False).build(lock, lambda _: None, arrivals)
        yield digest, ImageStore(other)


def obtain(lock: Lock, host: Host) -> None:
    """Download or build every wheel and package of a lock into the store.

    The caller holds the lock ``build`` of the home.
    """
    with obtaining(lock, host) as arrivals:
        arrivals.wait()


@contextmanager
def obtaining(lock: Lock, host: Host, *, anew: bool = False) -> Iterator[Arrivals]:
    """Fetch what `obtain` does, while the block works on the files that have arrived; see `fetching`.

    Where a wheel is built from its source, all is there before the block begins. With ``anew`` it is built
    where it is here already, too.
    """
    store = Store(host.home)
    if not anew:
        take_over_wheels(lock, store)
    missing = missing_wheels(lock, store, anew=anew)
    bring(missing, host)
    with fetching(to_fetch(lock, store, anew=anew), store, host.console) as arrivals:
        if missing:
            arrivals.wait()
            build_locked(lock, store, host, anew=anew)
        yield arrivals


def selftest_image(
    engine: Engine,
    digest: str,
    gpu: Gpu,
    host: Host,
    *,
    mode: Mode,
    again: bool = True,
    start: Sequence[str] = (),
) -> SelfTestReport:
    """Run this reprobuild's self-test in an image and keep its report, one of each mode.

    Without ``again``, an image that passed in the same circumstances is not tested: see `kept`.
    ``start``: how the image's entry point starts Python, which is then tested too.
    """
    if engine.kind == "oci":  # another engine may be on another machine
        refuse_too_little()
    runner, program, folder = engine.runner(digest), selftest_files(), host.home.folder("reports")
    where = circumstances(runner, engine.kind, program=program, gpu=gpu)
    if not again and (report := kept(digest, folder, where)):
        host.console.step(
            f"{digest[:19]} passed its self-test on this machine before and is unchanged;"
            " `reprobuild selftest` runs it again"
        )
        return report
    host.console.step(f"testing {digest[:19]} inside itself")
    forget(digest, folder)  # an earlier pass proves nothing if the test now breaks
    limit = SECONDS[mode] + SECONDS_OF_PACKAGE * _packages_of(engine.images, digest)
    report = run_selftest(
        runner, program=program, gpu=gpu, mode=mode, start=start, time_limit=limit, say=host.console.detail
    )
    keep(report, folder, where)
    return report


def _packages_of(images: Images, digest: str) -> int:
    """Return how many packages the request of an image's lock names; 0 where the image has no such lock."""
    text = images.file(digest, f"{OWN_FOLDER.lstrip('/')}/pylock.toml") or b""
    try:
        return len(parse_lock(text.decode("utf-8", "replace"), digest).request.packages)
    except LockError:
        return 0


def check_host(lock: Lock) -> None:
    """Raise `HostError` for missing requirements of a build, before gigabytes are downloaded."""
    if lock.base is None:
        process.require("mmdebstrap", "to install the Debian packages of the image")
    namespaces.check(all_ids=bool(lock.debian))
    refuse_too_little()


def _check_gpus(lock: Lock, gpu: Gpu, host: Host) -> None:
    """Warn, before the download, if this machine's driver or GPU cannot run the lock's PyTorch."""
    if gpu == "off":
        return
    # If there is no GPU to pass in, there is no hint: the engine examines that.
    for bad in (each for each in examine_gpus(needs_of(lock)) if each.good is False and each.hint):
        if gpu == "require":
            raise HostError(f"--gpu require: {bad.text}", hint=bad.hint)
        host.console.warn(f"{bad.text}; the test on the GPU will fail")


def write_context(lock: Lock, folder: Path, *, artifacts: bool, host: Host) -> Rendered:
    """Write the Dockerfile and its context; with ``artifacts`` also the wheels and the Debian root."""
    lock = lock_to_build(lock, host)
    rendered = render(lock)
    if artifacts:
        check_host(lock)
        check_platform(lock.platform)
        with host.home.lock("build", host.console):
            obtain(lock, host)
            _fill(lock, rendered, folder, host)
    else:
        _write_texts(rendered, folder)
    return rendered


def write_self_contained(lock: Lock, folder: Path, *, host: Host) -> Path:
    """Write a Dockerfile that needs no context; return its path. Only the Debian packages are fetched."""
    lock = lock_to_build(lock, host)
    urls = {p.sha256: without_credentials(package_urls(lock.suite, p)[0]) for p in lock.debian}
    check_self_contained(lock, urls)
    check_host(lock)
    with host.home.lock("build", host.console):
        fetch(replace(lock, python=(), conda=()), Store(host.home), host.console)
        records = debian_records(lock, Store(host.home), host)
    digest = tree_digest(record for record in records if record.path != ".")
    target = folder / "Dockerfile"
    make_folders(folder)
    atomic_write(target, render_self_contained(lock, DebianRoot(urls=urls, digest=digest)))
    return target


def _fill(lock: Lock, rendered: Rendered, folder: Path, host: Host) -> None:
    """Write a whole context. Everything locked is in the store, and the caller holds the build lock."""
    check_wheels(lock, Store(host.home))
    _write_texts(rendered, folder)
    for artifact in rendered.artifacts:
        _place(Store(host.home).path(artifact.sha256), folder / artifact.path)
    if lock.debian:
        write_system_tar(lock, Store(host.home), host, folder / DEBIAN_TAR)
    if lock.standalone is not None:
        write_system_tar(lock, Store(host.home), host, folder / PYTHON_TAR, "python")
    if lock.conda:
        write_conda_tar(lock, Store(host.home), host, folder / CONDA_TAR)


def _write_texts(rendered: Rendered, folder: Path) -> None:
    for path, content in rendered.files.items():
        make_folders((folder / path).parent)
        atomic_write(folder / path, content)


def _place(source: Path, target: Path) -> None:
    """Link a file of the store into a context; where the file system does not let it, copy it."""
    make_folders(target.parent)
    with storage_errors(target.parent):
        target.unlink(missing_ok=True)
        try:
            target.hardlink_to(source)
        except OSError:
            # One name for all of a folder, so that the next run takes the place of what a killed one left.
            partial = target.with_name(".partial")
            try:
                with storage_errors(target.parent):  # a full disk has room once the file is gone
                    shutil.copyfile(source, partial)  # a wheel has up to a gigabyte: not by way of memory
                    partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
