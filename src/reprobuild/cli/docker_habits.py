"""Hints for commands and options that a user of Docker types by habit. Imports nothing."""

from __future__ import annotations

_NOTHING_RUNS = "nothing runs in the background: a run ends with its program"

COMMAND_HINTS = {
    "attach": _NOTHING_RUNS,
    "build": "`reprobuild image` makes an image from a request; `reprobuild render` writes a Dockerfile",
    "commit": "nothing of a run is kept; put packages into the request, code into a Dockerfile",
    "create": "`reprobuild run` runs a command in an image",
    "exec": _NOTHING_RUNS,
    "history": "`reprobuild images --json` has the labels; the lock says what is in an image",
    "inspect": "`reprobuild images --json` has digest, size and labels; `verify` shows who signed it",
    "kill": _NOTHING_RUNS,
    "login": "logins are those of `docker login` and `podman login`",
    "logs": _NOTHING_RUNS,
    "ls": "`reprobuild images` lists the images",
    "ps": _NOTHING_RUNS,
    "pull": "an image in a registry is for other engines: `docker pull`, `podman pull`",
    "restart": _NOTHING_RUNS,
    "rm": "nothing of a run is kept; `reprobuild remove` removes the name of an image",
    "rmi": "`reprobuild remove` removes the name of an image, and `reprobuild clean` frees its space",
    "save": "`reprobuild export` writes an image to a file",
    "start": "`reprobuild run` runs a command in an image",
    "stop": _NOTHING_RUNS,
    "system": "`reprobuild clean` frees the space of what no image needs",
    "tag": "`reprobuild image LOCK --tag NAME` names an image; `push` names it in a registry",
}
"""Docker's commands, and what does the same here."""

_HOST_NETWORK = "the network of the host is shared, so a port of the program is one of this machine"

RUN_HINTS = {
    **dict.fromkeys(
        ("--gpus", "--device", "--runtime"), "GPUs are passed in if there are any; --gpu require insists"
    ),
    **dict.fromkeys(("-p", "--publish", "-P", "--expose"), _HOST_NETWORK),
    **dict.fromkeys(("--net", "--network"), f"{_HOST_NETWORK}; --no-network gives it none"),
    **dict.fromkeys(("--name", "--restart", "--cidfile"), "nothing of a run is kept, so it has no name"),
    **dict.fromkeys(
        ("-d", "--detach"), "it runs in the foreground; `nohup`, tmux or systemd-run keep it running"
    ),
    "--entrypoint": "name the program after the image",
    "--mount": "-v SRC:DST[:ro] binds a folder or file",
    **dict.fromkeys(("--ipc", "--shm-size"), "its shared memory has 2 GB; -v binds a folder for more"),
    "--privileged": "no such mode; for NVIDIA devices, see --gpu",
    **dict.fromkeys(("--cpus", "--cpuset-cpus"), "`taskset` before the command limits the processors"),
    "--read-only": "a run changes nothing of its image; -v SRC:DST:ro binds a folder read-only",
    "--platform": "an image runs on its own platform; `reprobuild image --platform` chooses it",
    "--env-file": "-e NAME=VALUE sets a variable; it may be repeated",
}
"""Options of ``docker run``, and what `reprobuild run` does instead."""
