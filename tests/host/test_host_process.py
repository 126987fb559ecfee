from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.errors import BuildError, HostError
from reprobuild.host import process
from reprobuild.host.process import ProcessFailed, ProcessTimeout


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def alive(pid: int) -> bool:
    """A killed orphan may be a zombie for a while, in a container whose init does not reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it goes between opening and reading
        return False


def wait_for(condition: object, seconds: float = 10) -> bool:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_run_returns_both_streams_and_feeds_the_input() -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.stderr.write('talk')"
    done = process.run(python(code), stdin=b"abc")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"cba", b"talk")


def test_run_has_no_input_unless_given() -> None:
    assert process.run(python("import sys; print(len(sys.stdin.read()))")).stdout == b"0\n"


def test_run_replaces_the_environment_and_the_folder(tmp_path: Path) -> None:
    done = process.run(
        python("import os; print(sorted(os.environ)[0], os.getcwd())"), env={"A": "1"}, cwd=tmp_path
    )
    assert done.stdout.decode().split() == ["A", str(tmp_path)]


def test_arguments_are_not_read_by_a_shell(tmp_path: Path) -> None:
    hostile = "$(touch x); `touch x` > x"
    done = process.run([*python("import sys; print(sys.argv[1])"), hostile], cwd=tmp_path)
    assert done.stdout.decode() == hostile + "\n"
    assert not list(tmp_path.iterdir())


def test_run_raises_on_a_bad_status_with_the_last_words() -> None:
    code = "import sys; print('out'); print('\\n'.join(map(str, range(40))), file=sys.stderr); sys.exit(3)"
    with pytest.raises(ProcessFailed) as failed:
        process.run(python(code))
    assert failed.value.returncode == 3
    assert failed.value.tail.splitlines() == [str(n) for n in range(25, 40)]
    assert failed.value.argv == tuple(python(code))
    assert process.run(python(code), check=False).returncode == 3


def test_run_takes_the_output_s_end_when_nothing_was_said() -> None:
    with pytest.raises(ProcessFailed, match="said on stdout"):
        process.run(python("import sys; print('said on stdout'); sys.exit(1)"))


@pytest.mark.parametrize("stream", [1, 2])
def test_what_a_process_leaves_running_is_not_waited_for(stream: int) -> None:
    code = (
        "import os, sys, time\n"
        f"os.write({stream}, b'x' * 60_000)\n"
        f"if os.fork(): os.write({stream}, b'end'); os._exit(3)\n"
        "time.sleep(60)"
    )
    start = time.monotonic()
    done = process.run(python(code), check=False, descendants=False)
    assert done.returncode == 3
    assert (done.stdout, done.stderr)[stream - 1] == b"x" * 60_000 + b"end"
    assert time.monotonic() - start < 50


def test_a_timeout_kills_the_children_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import os, sys, time\n"
        "pid = os.fork()\n"
        f"if pid: open({str(pid_file)!r}, 'w').write(str(pid))\n"
        "time.sleep(60)"
    )
    start = time.monotonic()
    with pytest.raises(ProcessTimeout) as stopped:
        process.run(python(code), timeout=0.7)
    assert stopped.value.seconds == 0.7
    assert time.monotonic() - start < 20
    assert wait_for(lambda: not alive(int(pid_file.read_text())))


def test_an_interrupt_kills_the_process(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # Not at once: an interrupt within Popen leaves its pipes to the garbage collector, which warns of them.
    code = f"import os, time; time.sleep(1); open({str(pid_file)!r}, 'w').write(str(os.getpid()))"
    code += "; time.sleep(60)"

    def interrupt() -> None:
        wait_for(lambda: pid_file.exists() and pid_file.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        process.run(python(code))
    thread.join()
    assert not alive(int(pid_file.read_text()))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_writes_without_end_is_stopped(stream: str) -> None:
    code = f"import sys\nwhile True: sys.{stream}.write('x' * 4096)"
    done = process.run(python(code), limit=100_000, check=False)
    assert done.returncode == -signal.SIGKILL
    assert max(len(done.stdout), len(done.stderr)) <= 100_000
    assert b"stopped: it wrote more than 100000 bytes" in done.stderr
    with pytest.raises(ProcessFailed, match="it wrote more than 100000 bytes"):
        process.run(python(code), limit=100_000)


def test_a_program_that_cannot_be_started_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "which", lambda _: None)  # no setpriv, which would hide it
    bad = tmp_path / "program"
    bad.write_text("no program")
    for start in (process.run, process.call):
        with pytest.raises(HostError, match="program cannot be started: Permission denied"):
            start([str(bad)])


def test_what_no_caller_expects_is_still_named() -> None:
    """Status 7 and a message, where it was a traceback and status 1."""
    with pytest.raises(HostError) as error:
        process.run(python("raise SystemExit('broken settings')"))
    assert error.value.message.endswith("exited with 1: broken settings")
    with pytest.raises(HostError, match=r"did not end within 0.01 s"):
        process.run(python("import time; time.sleep(60)"), timeout=0.01)


def test_a_stopped_step_is_named_by_what_was_not_done() -> None:
    timeout, limit = process.ProcessTimeout(["x"], 3), process.LimitReached(["x"], "it took more (VARIABLE)")
    found = []
    for stopped in (timeout, limit):
        with (
            pytest.raises(BuildError) as error,
            process.named_when_stopped(BuildError, "it was not built", slow="wait"),
        ):
            raise stopped
        found.append((error.value.message, error.value.hint))
    assert found == [
        ("it was not built within 3 s", "wait"),
        ("it was not built: it took more (VARIABLE)", limit.hint),
    ]


def test_call_passes_the_status_on() -> None:
    assert process.call(python("raise SystemExit(7)")) == 7


def test_feed_fills_the_input_and_raises_on_a_bad_status() -> None:
    def write(send: Callable[[bytes], object]) -> None:
        for _ in range(50):
            send(b"x" * 100_000)

    process.feed(python("import sys; assert len(sys.stdin.read()) == 5_000_000"), write)
    with pytest.raises(ProcessFailed, match="told why"):
        process.feed(python("raise SystemExit('told why')"), write)


def test_feed_tells_why_a_process_ended_before_it_had_read_all() -> None:
    """Also when some of it is still in the buffer."""

    def write(out: Callable[[bytes], object]) -> None:
        while True:
            out(bytes(100))

    with pytest.raises(process.ProcessFailed, match="told why"):
        process.feed(python("raise SystemExit('told why')"), write)


def test_feed_kills_the_process_when_the_writer_fails(tmp_path: Path) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    start = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        process.feed(python("import time; time.sleep(60)"), broken)
    assert time.monotonic() - start < 20


def test_a_missing_program_is_named_with_its_package() -> None:
    with pytest.raises(HostError, match="no-such-program is not installed; it is needed to test") as error:
        process.require("no-such-program", "to test")
    assert error.value.hint == "apt-get install -y no-such-program"


def test_the_package_is_named_where_it_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_kwargs: None)
    with pytest.raises(HostError) as error:
        process.require("apt-ftparchive", "to index packages")
    assert error.value.hint == "apt-get install -y apt-utils"


def test_which_finds_debian_s_sbin_without_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert process.which("ldconfig") in ("/usr/sbin/ldconfig", "/sbin/ldconfig")


def test_tail_survives_what_is_no_text() -> None:
    assert process.tail(b"\xff\xfe\n\nend\n") == "\ufffd\ufffd\n\nend"


@pytest.mark.parametrize("how", ["return", "raise ValueError", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_what_is_done_at_the_end_is_done_however_it_ends(tmp_path: Path, how: str) -> None:
    code = (
        "import os, signal\nfrom reprobuild.host import process\ndef run():\n"
        f" with process.at_the_end(['touch', {str(tmp_path / 'done')!r}]):\n  {how}\nrun()"
    )
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert wait_for((tmp_path / "done").exists)


def test_what_cannot_be_done_at_the_end_is_given_up() -> None:
    with process.at_the_end(["false"]):
        pass


@pytest.mark.parametrize("command", ["kill -KILL $$", "exit 137"])
def test_who_was_killed_and_said_nothing_is_said_to_be_killed(command: str) -> None:
    with pytest.raises(ProcessFailed) as caught:
        process.run(["sh", "-c", command])
    assert caught.value.tail == "it was killed (SIGKILL)"
