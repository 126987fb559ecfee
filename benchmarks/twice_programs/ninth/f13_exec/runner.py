"""Runs one sample against the tests of its problem."""
import contextlib
import signal


class OutOfTime(Exception):
    pass


@contextlib.contextmanager
def limited(seconds):
    def stop(signum, frame):
        raise OutOfTime()

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # cause
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def run_sample(problem, code, seconds):
    space = {}
    try:
        exec(compile(code, problem["task_id"], "exec"), space)
    except SyntaxError:
        return "syntax"
    solve = space["solve"]
    try:
        with limited(seconds):
            for arg, want in problem["tests"]:
                if solve(arg) != want:
                    return "wrong"
    except OutOfTime:
        return "slow"
    except Exception:
        return "error"
    return "passed"
