"""Runs a command as a process beside it, for the first process of a container; ends with its exit status.

``python3 -I -S -c "$(cat init.py)" COMMAND ARGUMENT...``. The kernel keeps from the first process of a
container every signal that it does not catch, so a plain ``sleep`` there cannot be stopped by Ctrl-C. Signals
are passed on, what is left over is reaped, the command has the terminal; 128 and more: a signal ended it, 126
and 127: it cannot be started. Standard library only.
"""

import os
import signal
import sys

_PASSED_ON = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH),
)


def start(argv: "list[str]") -> int:
    """Start the command in a group of its own, in the terminal's foreground if there is one."""
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        if os.isatty(0):
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpgrp())
        # Those that Python ignores, too.
        for number in (*_PASSED_ON, signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvp(argv[0], argv)  # noqa: S606 -- a command as it is given, without a shell
    except OSError as error:
        os.write(2, f"reprobuild: {argv[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def main() -> int:
    """Run the command to its end."""
    # Blocked until there is somebody to pass them on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    child = start(sys.argv[1:])
    for number in _PASSED_ON:
        signal.signal(number, lambda got, _: os.kill(child, got))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    while True:
        ended, status = os.waitpid(-1, os.WUNTRACED)
        if ended != child:
            continue
        if os.WIFSTOPPED(status):  # by Ctrl-Z: no shell is here to let it go on
            os.kill(child, signal.SIGCONT)
            continue
        # os.waitstatus_to_exitcode is of Python 3.9.
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
