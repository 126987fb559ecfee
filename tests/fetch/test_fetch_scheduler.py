from __future__ import annotations

import logging
import os
import re
import signal
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from reprobuild.errors import BuildError, FetchError, StorageError
from reprobuild.fetch import scheduler as fetch_module
from reprobuild.fetch.download import CHUNK, Stopped
from reprobuild.fetch.scheduler import FROM_LARGEST, FROM_SMALLEST, MOST_FAILURES, fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from support.disk import tiny_disk
from support.fetched import BIG, SMALL, fails, fetching, wait_for
from support.fetching import QUICK, Meter, check, lock_of, sha256
from support.fixtures import fixtures_of
from support.proxy import serve_proxy
from support.server import Server, ca_file, serve

globals().update(fixtures_of("support.fetched"))


# What goes well


def test_wheels_and_debian_packages_are_fetched(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", server.url + "/debian")
    server.add("/debian/pool/main/libc6_1_amd64.deb", b"a deb")
    lock = lock_of(
        {server.add("/big.whl", BIG): BIG, server.add("/small.whl", SMALL): SMALL}, {"libc6": b"a deb"}
    )
    meter = Meter()
    fetch(lock, store, meter)
    check(store, BIG, SMALL, b"a deb")
    assert meter.heard == ["fetching 3 files, 3.2 MB"]
    assert len(BIG) + len(SMALL) + 5 == meter.total == meter.done


def test_what_is_there_is_not_asked_for(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", SMALL): SMALL, server.add("/b.whl", BIG): BIG})
    fetch(lock, store, Meter())
    store.remove(sha256(SMALL))
    fetch(lock, store, Meter())
    assert [len(server.hits("/a.whl")), len(server.hits("/b.whl"))] == [2, 1]


def test_with_everything_there_no_setting_is_even_looked_at(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = lock_of({server.add("/a.whl", SMALL): SMALL})
    fetch(lock, store, Meter())
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere")  # a session would refuse it
    meter = Meter()
    fetch(lock, store, meter)
    assert meter.heard == []


def test_many_files_by_all_threads(server: Server, store: Store) -> None:
    bodies = {
        server.add(f"/{i}.whl", body): body for i in range(100) if (body := f"wheel {i}".encode() * i or b"-")
    }
    fetch(lock_of(bodies), store, Meter())
    check(store, *bodies.values())
    assert len(server.log) == 100


def test_a_file_locked_twice_is_fetched_once(server: Server, store: Store) -> None:
    fetch(lock_of({server.add("/a.whl", SMALL): SMALL, server.add("/b.whl", SMALL): SMALL}), store, Meter())
    assert len(server.log) == 1


@pytest.fixture
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))


@pytest.mark.usefixtures("_own_folder")
def test_a_file_address(tmp_path: Path, store: Store) -> None:
    (tmp_path / "a wheel+.whl").write_bytes(BIG)
    fetch(lock_of({(tmp_path / "a wheel+.whl").as_uri(): BIG}), store, Meter())
    check(store, BIG)


@pytest.mark.usefixtures("_own_folder")
def test_a_file_address_that_is_gone_or_another(tmp_path: Path, store: Store) -> None:
    error = fails(lock_of({(tmp_path / "a.whl").as_uri(): SMALL}), store)
    assert "a.whl: No such file" in error.message
    (tmp_path / "a.whl").write_bytes(b"another one")
    error = fails(lock_of({(tmp_path / "a.whl").as_uri(): SMALL}), store)
    assert sha256(b"another one") in error.message
    check(store)


@pytest.mark.usefixtures("_own_folder")
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_a_file_address_of_what_is_no_file(tmp_path: Path, store: Store, kind: str) -> None:
    path = tmp_path / "a.whl"
    os.mkfifo(path) if kind == "fifo" else os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    error = fails(lock_of({path.as_uri(): SMALL}), store)
    assert "not a regular file" in error.message
    check(store)


def test_a_file_address_that_no_setting_names(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock out of a pull request told hash and size of any file of the machine."""
    secret, folder = tmp_path / "secret", tmp_path / "wheels"
    secret.write_bytes(SMALL)
    folder.mkdir()
    (folder / "a.whl").symlink_to(secret)
    for url in (secret.as_uri(), (folder / "a.whl").as_uri(), f"{folder.as_uri()}/../secret"):
        monkeypatch.setenv("UV_FIND_LINKS", str(folder))
        error = fails(lock_of({url: b"another wheel"}), store)
        assert "none of your settings names its folder" in error.message
        assert sha256(SMALL) not in error.message
        monkeypatch.setenv("REPROBUILD_LOCAL_FILES", f"{folder}:{tmp_path}")
        assert sha256(SMALL) in fails(lock_of({url: b"another wheel"}), store).message
        monkeypatch.delenv("REPROBUILD_LOCAL_FILES")


@pytest.mark.parametrize("size", [len(SMALL) + 1, len(SMALL) - 1, -1, 0, 10**30, 1e30, True])
def test_a_size_that_is_not_the_file_s(server: Server, store: Store, size: int) -> None:
    """With the right hash too: what is reserved, shown and compared is the size."""
    lock = lock_of({server.add("/a.whl", SMALL): SMALL})
    wheel = replace(lock.python[0].wheel, size=size)
    error = fails(replace(lock, python=[replace(lock.python[0], wheel=wheel)]), store)
    assert "a.whl" in error.message
    check(store)


# Connections and servers that break


# Files that are not there, or not those locked


@pytest.mark.parametrize(
    "fault", [{"status": 404}, {"status": 403}, {"status": 503}, {"body": b"tampered"}, {"body": bytes(99)}]
)
def test_the_next_mirror_is_tried(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch, fault: dict[str, object]
) -> None:
    first = server.add("/one.deb", **fault)  # type: ignore[arg-type]  # Page's fields, whose types differ
    urls = (first, server.add("/two.deb", b"the deb."))
    monkeypatch.setattr(fetch_module, "package_urls", lambda suite, package: urls)
    fetch(lock_of({}, {"libc6": b"the deb."}), store, Meter(), patience=QUICK)
    check(store, b"the deb.")
    assert [len(server.hits("/one.deb")), len(server.hits("/two.deb"))] == [1, 1]


def test_with_all_mirrors_failing_each_is_named_once(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = (server.add("/one.deb", status=404), server.add("/two.deb", b"tampered"))
    monkeypatch.setattr(fetch_module, "package_urls", lambda suite, package: urls)
    error = fails(lock_of({}, {"libc6": b"the deb."}), store)
    assert "404" in error.message
    assert sha256(b"tampered") in error.message


def test_failures_are_collected_and_the_rest_is_fetched(server: Server, store: Store) -> None:
    bad = {f"{server.url}/bad{i}.whl": b"bad %d" % i for i in range(3)}
    error = fails(lock_of({server.add("/good.whl", BIG): BIG} | bad), store)
    assert "3 of 4 files could not be fetched\n" in error.message
    assert all(f"bad{i}.whl: " in error.message for i in range(3))
    check(store, BIG)


def test_with_many_failures_the_rest_is_not_tried(server: Server, store: Store) -> None:
    error = fails(lock_of({f"{server.url}/{i}.whl": b"bad %d" % i for i in range(200)}), store)
    assert "and the rest was not tried" in error.message
    assert re.search(r"\n  and \d+ more", error.message)
    assert len(server.log) < MOST_FAILURES + 3 * (FROM_LARGEST + FROM_SMALLEST)


# What an earlier run left


def test_ctrl_c_leaves_no_file_with_a_final_name(server: Server, store: Store) -> None:
    url = server.add("/a.whl", BIG, stall_at=2 * CHUNK)
    with fetching(store, {url: BIG}) as process:
        wait_for(lambda: store.partial_size(sha256(BIG)) >= CHUNK)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert err.rstrip().endswith(b"KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    assert store.sizes() == {}


@pytest.mark.parametrize("tls", [False, True])
def test_ctrl_c_ends_threads_that_wait_for_a_silent_server(
    ca: trustme.CA, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file(ca, tmp_path)))
    before = set(threading.enumerate())
    with serve(certificate=ca.issue_cert("127.0.0.1") if tls else None) as server:
        wheels = {
            server.add(f"/{i}.whl", BIG + b"%d" % i, stall_at=2 * CHUNK): BIG + b"%d" % i for i in range(12)
        }

        def interrupt() -> None:
            wait_for(lambda: sum(store.partial_size(sha256(body)) >= CHUNK for body in wheels.values()) == 8)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            fetch(lock_of(wheels), store, Meter())
        thread.join()
        # The threads of the server end when they see that the connection is closed.
        left = [t.name for t in set(threading.enumerate()) - before if "_member" in t.name]
        assert left == []
        for page in server.pages.values():
            page.stall_at = None
        fetch(lock_of(wheels), store, Meter())
    check(store, *wheels.values())


def test_two_processes_at_once_share_the_work(server: Server, store: Store) -> None:
    wheels = {
        server.add(f"/{i}.whl", body, rate=8 << 20): body
        for i, body in enumerate([BIG, BIG + b"1", BIG + b"2", SMALL, SMALL + b"1"])
    }
    with fetching(store, wheels) as one, fetching(store, wheels) as two:
        assert [one.wait(20), two.wait(20)] == [0, 0]
    check(store, *wheels.values())
    assert len(wheels) == len(server.log)


def test_who_waits_takes_over_from_one_that_is_killed(server: Server, store: Store) -> None:
    url = server.add("/a.whl", BIG, stall_at=2 * CHUNK)
    with fetching(store, {url: BIG}) as process:
        # Only then: an answer that is not there yet would go on to its end, and nobody would have to wait.
        wait_for(lambda: server.pages["/a.whl"].stalled and store.partial_size(sha256(BIG)) >= CHUNK)
        server.pages["/a.whl"].stall_at = None
        meter = Meter()
        thread = threading.Thread(target=fetch, args=(lock_of({url: BIG}), store, meter))
        thread.start()
        wait_for(lambda: len(meter.heard) > 1)
        process.send_signal(signal.SIGKILL)
        thread.join(10)
    check(store, BIG)
    assert meter.heard[1] == "another reprobuild is fetching a.whl: waiting for it"
    assert len(BIG) == meter.done


# The disk


@pytest.mark.parametrize(("size", "says"), [(1 << 20, False), (3 << 20, True)])
def test_a_disk_on_which_the_download_just_fits(
    server: Server, tmp_path: Path, size: int, says: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with tiny_disk(tmp_path / "disk") as disk:
        lock = lock_of({server.add("/a.whl", bytes(size)): bytes(size)})
        fetch(lock, Store(Home(disk)), Console())
    assert ("is enough for the download, but an image of it needs about" in capsys.readouterr().err) == says


def test_a_disk_that_is_too_small_is_seen_before_the_first_request(server: Server, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk") as disk:
        lock = lock_of({server.add("/a.whl", bytes(7 << 20)): bytes(7 << 20)})
        with pytest.raises(StorageError, match=r"needs 7.3 MB, only \S+ MB free"):
            fetch(lock, Store(Home(disk)), Meter())
    assert server.log == []


def test_a_disk_that_fills_up_meanwhile(server: Server, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk") as disk:
        filler = disk / "filler"
        store = Store(Home(disk / "home"))
        lock = lock_of({server.add("/a.whl", BIG, before_body=lambda: fill(filler, leave=2 * CHUNK)): BIG})
        with pytest.raises(StorageError, match="No space left on device") as caught:
            fetch(lock, store, Meter(), patience=QUICK)
        assert "reprobuild clean" in caught.value.hint
        check(store)
        filler.unlink()
        server.pages["/a.whl"].before_body = None
        fetch(lock, store, Meter())
        check(store, BIG)


def fill(filler: Path, *, leave: int) -> None:
    status = os.statvfs(filler.parent)
    filler.write_bytes(bytes(status.f_bavail * status.f_frsize - leave))


# Proxies, certificates, passwords


def test_a_proxy_is_used(server: Server, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//someone:proxy-secret@"))
    server.proxy_login = "someone:proxy-secret"
    server.add("/a.whl", SMALL)
    fetch(lock_of({"http://wheels.example/a.whl": SMALL}), store, Meter())
    check(store, SMALL)
    assert server.log[0].host == "wheels.example"


def test_a_proxy_that_opens_tls_with_a_ca_of_its_own(
    server: Server, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add("/a.whl", BIG, cut_at=CHUNK)
    lock = lock_of({"https://wheels.example/a.whl": BIG})
    with serve_proxy(tmp_path, {"wheels.example": server.url}, login="me:word") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(FetchError, match=r"wheels\.example"):
            fetch(lock, store, Meter(), patience=QUICK)
        proxy.trust(monkeypatch)
        fetch(lock, store, Meter(), patience=QUICK)
        assert proxy.hosts == {"wheels.example"}
    check(store, BIG)


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_ca_of_ones_own(
    ca: trustme.CA, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(ca_file(ca, tmp_path)))
    with serve(certificate=ca.issue_cert("127.0.0.1")) as server:
        fetch(lock_of({server.add("/a.whl", BIG, cut_at=CHUNK): BIG}), store, Meter(), patience=QUICK)
    check(store, BIG)


def test_the_index_password_is_used_and_never_seen(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PIP_INDEX_URL", server.url.replace("//", "//someone:index-secret@") + "/simple")
    lock = lock_of({server.add("/a.whl", SMALL, login="someone:index-secret", first=(503,)): SMALL})
    fetch(lock, store, Meter(), patience=QUICK)
    check(store, SMALL)
    assert "a.whl" in caplog.text
    assert "secret" not in caplog.text


def test_the_password_of_a_debian_mirror_is_never_seen(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", server.url.replace("//", "//someone:mirror-secret@"))
    server.add("/pool/main/libc6_1_amd64.deb", b"tampered", login="someone:mirror-secret")
    error = fails(lock_of({}, {"libc6": b"the deb."}), store)
    assert sha256(b"tampered") in error.message
    assert "secret" not in error.message + error.hint + caplog.text


# What is worked on meanwhile


def worked(lock: Lock, store: Store, wanted: list[bytes], then: str = "") -> None:
    """Wait for some files as they come; fail as work does that lacks its input, or with what is given."""
    patience = replace(QUICK, silence=600)
    with fetch_module.fetching(lock, store, Meter(), patience=patience) as arrivals:
        for each in wanted:
            try:
                arrivals.wait([sha256(each)])
            except Stopped:
                raise BuildError("what it needs is missing") from None
        if then:
            raise BuildError(then)


@pytest.mark.parametrize("wanted", [[SMALL, BIG], [BIG]])
def test_work_on_what_came_ends_with_the_error_of_what_did_not(
    server: Server, store: Store, wanted: list[bytes]
) -> None:
    """Whatever the work itself raises by then: it says less."""
    lock = lock_of({server.add("/a.whl", SMALL): SMALL, server.add("/b.whl", status=404): BIG})
    with pytest.raises(FetchError, match=r"b\.whl: .* answers 404"):
        worked(lock, store, wanted)
    check(store, SMALL)


def test_work_that_fails_ends_the_fetching(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", SMALL): SMALL, server.add("/b.whl", BIG, stall_at=CHUNK): BIG})
    with pytest.raises(BuildError, match="bad wheel"):
        worked(lock, store, [SMALL], "bad wheel")
    assert not store.has(sha256(BIG), len(BIG))
