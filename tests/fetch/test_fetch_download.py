"""One download: cut off, resumed, refused, verified."""

from __future__ import annotations

import signal
import time

import pytest

from reprobuild.fetch.download import CHUNK, Patience
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.net import transport
from support.fetched import BIG, SMALL, fails, fetching, leave, wait_for
from support.fetching import QUICK, Meter, check, lock_of, sha256
from support.fixtures import fixtures_of
from support.server import Server

globals().update(fixtures_of("support.fetched"))


def test_a_redirect_is_followed(server: Server, store: Store) -> None:
    target = server.add("/files/a.whl", SMALL)
    fetch(lock_of({server.add("/a.whl", location=target): SMALL}), store, Meter())
    check(store, SMALL)


def test_a_body_without_a_length(server: Server, store: Store) -> None:
    fetch(lock_of({server.add("/a.whl", BIG, length=False): BIG}), store, Meter())
    check(store, BIG)


def test_a_server_that_drips_is_given_up(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "WINDOW", 0.05)
    monkeypatch.setattr(transport, "SLOWEST", 1 << 30)
    error = fails(
        lock_of({server.add("/a.whl", BIG, rate=4_000_000): BIG}), store, Patience(attempts=2, pause=0.001)
    )
    assert "bytes a second" in error.message


def test_a_truncated_download_goes_on_where_it_stopped(server: Server, store: Store) -> None:
    meter = Meter()
    lock = lock_of({server.add("/a.whl", BIG, cut_at=2 * CHUNK + 5): BIG})
    fetch(lock, store, meter, patience=QUICK)
    check(store, BIG)
    first, second = server.hits("/a.whl")
    assert first.range is None
    assert second.range is not None
    assert second.status == 206
    assert len(BIG) == meter.done


def test_a_download_that_a_proxy_has_cut_goes_on(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", BIG, cut_at=2 * CHUNK + 5, claims_cut=True): BIG})
    fetch(lock, store, Meter(), patience=QUICK)
    check(store, BIG)
    assert [hit.status for hit in server.log] == [200, 206]


def test_without_range_support_it_starts_again(server: Server, store: Store) -> None:
    meter = Meter()
    lock = lock_of({server.add("/a.whl", BIG, cut_at=2 * CHUNK + 5, ranges=False): BIG})
    fetch(lock, store, meter, patience=QUICK)
    check(store, BIG)
    assert [hit.status for hit in server.log] == [200, 200]
    assert len(BIG) == meter.done


def test_a_server_that_answers_with_another_range_is_not_believed(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", BIG, cut_at=2 * CHUNK + 5, wrong_range=True): BIG})
    fetch(lock, store, Meter(), patience=QUICK)
    check(store, BIG)


def test_a_server_that_always_breaks_off_is_given_up_and_its_part_kept(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", BIG, cut_at=10, cuts=99): BIG})
    error = fails(lock, store)
    assert "a.whl: 127.0.0.1" in error.message
    assert "the download is resumed" in error.hint
    assert QUICK.attempts == len(server.log)


def test_a_server_that_breaks_off_and_starts_anew_is_given_up(server: Server, store: Store) -> None:
    fails(lock_of({server.add("/a.whl", BIG, cut_at=2 * CHUNK + 5, cuts=99, ranges=False): BIG}), store)
    assert QUICK.attempts + 1 >= len(server.log)


def test_a_server_that_gives_a_bit_more_each_time_is_borne_with(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", BIG, cut_at=CHUNK, cuts=99): BIG})
    fetch(lock, store, Meter(), patience=Patience(attempts=2, pause=0.001))
    check(store, BIG)


def test_a_body_of_unknown_length_that_ends_early_is_tried_again(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", BIG, length=False, cut_at=CHUNK + 5): BIG})
    fetch(lock, store, Meter(), patience=QUICK)
    check(store, BIG)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_passing_failure_is_waited_out(server: Server, store: Store, status: int) -> None:
    lock = lock_of({server.add("/a.whl", SMALL, first=(status, status)): SMALL})
    fetch(lock, store, Meter(), patience=QUICK)
    check(store, SMALL)
    assert [status, status, 200] == [hit.status for hit in server.log]


def test_a_lasting_failure_is_given_up(server: Server, store: Store) -> None:
    error = fails(lock_of({server.add("/a.whl", status=503): SMALL}), store)
    assert "answers 503 Service Unavailable" in error.message
    assert QUICK.attempts == len(server.log)
    check(store)


def test_retry_after_is_kept_to(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", SMALL, first=(429,), retry_after="9999"): SMALL})
    began = time.monotonic()
    fetch(lock, store, Meter(), patience=Patience(pause=0.001, longest_pause=0.3))
    assert time.monotonic() - began >= 0.3


def test_a_silent_server_is_given_up(server: Server, store: Store) -> None:
    lock = lock_of({server.add("/a.whl", BIG, stall_at=10): BIG})
    error = fails(lock, store, Patience(attempts=2, pause=0.001, silence=0.1))
    assert "no answer within the time limit" in error.message


def test_a_tampered_file_leaves_nothing(server: Server, store: Store) -> None:
    changed = BIG[:-1] + b"x"
    error = fails(lock_of({server.add("/a.whl", changed): BIG}), store)
    for part in (f"a.whl: {server.url[7:]} ", sha256(BIG), sha256(changed)):
        assert part in error.message
    assert "must not be used" in error.hint
    assert len(server.log) == 1
    check(store)


def test_a_file_larger_than_locked_is_broken_off(server: Server, store: Store) -> None:
    error = fails(lock_of({server.add("/a.whl", BIG): BIG[:CHUNK]}), store)
    assert f"more than the {CHUNK} bytes locked" in error.message
    check(store)


def test_a_file_smaller_than_locked(server: Server, store: Store) -> None:
    """It may also have been cut on the way, so it is tried again."""
    error = fails(lock_of({server.add("/a.whl", SMALL): BIG}), store)
    assert f"{len(SMALL)} of {len(BIG)} bytes" in error.message
    assert "or it is another file than the one locked" in error.message
    assert len(server.log) > 1


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("part", [b"garbage" * 9, BIG[:-5] + b"12345", BIG + b"more"])
def test_a_bad_part_is_replaced(server: Server, store: Store, part: bytes, ranges: bool) -> None:
    leave(store, BIG, part)
    meter = Meter()
    fetch(lock_of({server.add("/a.whl", BIG, ranges=ranges): BIG}), store, meter, patience=QUICK)
    check(store, BIG)
    assert len(BIG) == meter.done


def test_a_part_with_all_its_bytes_needs_no_server(store: Store) -> None:
    leave(store, BIG, BIG)
    fetch(lock_of({"http://wheels.invalid/a.whl": BIG}), store, Meter())
    check(store, BIG)


def test_a_tampered_file_is_found_after_a_good_part(server: Server, store: Store) -> None:
    leave(store, BIG, BIG[:CHUNK])
    fails(lock_of({server.add("/a.whl", BIG[:-1] + b"x"): BIG}), store)
    assert [hit.range for hit in server.log] == ["bytes=1048576-", None]
    check(store)


def test_a_killed_run_is_gone_on_with(server: Server, store: Store) -> None:
    url = server.add("/a.whl", BIG, stall_at=2 * CHUNK + 5 * (1 << 16))
    with fetching(store, {url: BIG}) as process:
        wait_for(lambda: store.partial_size(sha256(BIG)) >= 2 * CHUNK)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert store.sizes() == {}
    server.pages["/a.whl"].stall_at = None
    meter = Meter()
    fetch(lock_of({url: BIG}), store, meter)
    check(store, BIG)
    assert [None, f"bytes={2 * CHUNK}-"] == [hit.range for hit in server.log]
    assert len(BIG) == meter.done
