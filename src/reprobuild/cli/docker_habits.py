"""Hints for commands and options that a user of Docker types by habit. Imports nothing."""

from __future__ import annotations

_NOTHING_RUNS = "nothing runs in the background: a run ends with its program"

_NO_CONTAINERS = "there are no containers to keep: a run ends with its program, and leaves nothing"
_IN_ENGINES = "Docker and Podman have that: `reprobuild load` copies an image into them"

COMMAND_HINTS = {
    **dict.fromkeys(
        ("attach", "events", "exec", "kill", "logs", "pause", "port", "ps", "restart", "stats"), _NOTHING_RUNS
    ),
    **dict.fromkeys(("stop", "top", "unpause", "wait"), _NOTHING_RUNS),
    **dict.fromkeys(("container", "pod", "rename", "rm", "update"), _NO_CONTAINERS),
    **dict.fromkeys(("compose", "context", "network", "secret", "volume"), _IN_ENGINES),
    "build": "`reprobuild image` makes an image from a request; `reprobuild render` writes a Dockerfile",
    "builder": "`reprobuild clean` frees the space of what no image needs",
    "buildx": "`reprobuild image` makes an image; `reprobuild render` writes a Dockerfile for BuildKit",
    "commit": "nothing of a run is kept; put packages into the request, code into a Dockerfile",
    "cp": "`reprobuild run -v $PWD:/work` binds a folder, into which the program copies",
    "create": "`reprobuild run` runs a command in an image",
    "help": "`reprobuild COMMAND --help` explains a command",
    "history": "`reprobuild inspect` shows the layers of an image and what is in them",
    "import": "an image comes from a lock; `reprobuild lock --from-image` takes the pins of another one",
    "info": "`reprobuild doctor` says what this machine has",
    "login": "logins are those of `docker login` and `podman login`",
    "logout": "logins are those of `docker logout` and `podman logout`",
    "ls": "`reprobuild images` lists the images",
    "manifest": "`reprobuild inspect` shows an image, one in a registry too",
    "prune": "`reprobuild clean` frees the space of what no image needs",
    "pull": "an image in a registry is for other engines: `docker pull`, `podman pull`",
    "rmi": "`reprobuild remove` removes the name of an image, and `reprobuild clean` frees its space",
    "save": "`reprobuild export` writes an image to a file",
    "scout": "`reprobuild lock --report FILE --osv SOURCE` lists the known vulnerabilities of a lock",
    "search": "`reprobuild versions` lists what your index has PyTorch for",
    "start": "`reprobuild run` runs a command in an image",
    "system": "`reprobuild clean` frees the space of what no image needs",
    "tag": "`reprobuild image LOCK --tag NAME` names an image; `push` names it in a registry",
    "version": "`reprobuild --version` shows it; `reprobuild versions` lists CUDA's",
}
"""Docker's commands, with their equivalents here."""

_HOST_NETWORK = "the network of the host is shared, so a port of the program is one of this machine"

_NOTHING_KEPT = "nothing of a run is kept"
_NO_PRIVILEGES = "no privileges can be added"
_HOSTS = "/etc/hosts and /etc/resolv.conf are those of this machine"
_PROCESSORS = "`taskset` before the command limits the processors"
_MEMORY = "-m limits the memory, swap included"
_STREAMS = "input, output, errors and signals are always passed on"
_VARIABLES = "-e NAME=VALUE sets a variable, -e NAME passes one on; no others are passed"
_OWN_IMAGES = "images are those of `reprobuild images`"
_PLATFORM = "an image runs on its own platform; `reprobuild image --platform` chooses it"
_UNWATCHED = "nothing watches a run; it ends with the status of its program"

_RUN = {
    **dict.fromkeys(
        ("--gpus", "--device", "--runtime"),
        "GPUs are passed in if there are any; --gpu require insists, -e CUDA_VISIBLE_DEVICES=0 chooses",
    ),
    **dict.fromkeys(("-p", "--publish", "-P", "--publish-all", "--expose"), _HOST_NETWORK),
    **dict.fromkeys(("--ip", "--ip6", "--link", "--mac-address", "--network-alias"), _HOST_NETWORK),
    **dict.fromkeys(("--net", "--network"), f"{_HOST_NETWORK}; --no-network gives it none"),
    **dict.fromkeys(("--name", "--restart", "--cidfile", "--replace"), f"{_NOTHING_KEPT}, so it has no name"),
    **dict.fromkeys(
        ("-d", "--detach"), "it runs in the foreground; `nohup`, tmux or systemd-run keep it running"
    ),
    **dict.fromkeys(("-a", "--attach", "--detach-keys", "--sig-proxy"), _STREAMS),
    "--entrypoint": "name the program after the image",
    **dict.fromkeys(("--mount", "--secret"), "-v SRC:DST[:ro] binds a folder or file"),
    **dict.fromkeys(("--ipc", "--shm-size"), "its shared memory has 2 GB; -v binds a folder for more"),
    "--privileged": "no such mode; for NVIDIA devices, see --gpu",
    **dict.fromkeys(("-c", "--cpus", "--cpuset-cpus", "--cpuset-mems", "--cpu-shares"), _PROCESSORS),
    **dict.fromkeys(("--cpu-period", "--cpu-quota"), _PROCESSORS),
    **dict.fromkeys(("--memory-reservation", "--memory-swap", "--memory-swappiness"), _MEMORY),
    **dict.fromkeys(("--oom-kill-disable", "--oom-score-adj"), _MEMORY),
    "--read-only": "a run changes nothing of its image; -v SRC:DST:ro binds a folder read-only",
    **dict.fromkeys(("--arch", "--os", "--platform"), _PLATFORM),
    **dict.fromkeys(("--env-file", "--env-host", "--http-proxy", "--unsetenv"), _VARIABLES),
    **dict.fromkeys(("--cap-add", "--cap-drop", "--security-opt", "--userns"), _NO_PRIVILEGES),
    **dict.fromkeys(("--gidmap", "--uidmap"), _NO_PRIVILEGES),
    **dict.fromkeys(("--add-host", "--dns", "--dns-option", "--dns-search", "--no-hosts"), _HOSTS),
    **dict.fromkeys(
        ("--domainname", "--hostname"), "it is always `reprobuild`, so that no result depends on it"
    ),
    **dict.fromkeys(("--pid", "--uts"), "processes and name are always its own"),
    **dict.fromkeys(("--annotation", "--label", "-l", "--label-file"), _NOTHING_KEPT),
    **dict.fromkeys(("--log-driver", "--log-opt", "--pod", "--rmi", "--volumes-from"), _NOTHING_KEPT),
    **dict.fromkeys(("--health-cmd", "--health-interval", "--no-healthcheck"), _UNWATCHED),
    "--stop-timeout": "`timeout` before the command ends it",
    "--tz": "-e TZ=NAME sets the time zone",
    "--ulimit": "`-- sh -c 'ulimit …; exec PROGRAM'` sets a limit",
    "--umask": "`-- sh -c 'umask …; exec PROGRAM'` sets it",
    "--sysctl": "settings of the kernel are those of this machine",
    **dict.fromkeys(("--init", "--stop-signal"), "its first process is an init, which passes signals on"),
    "--group-add": "-u USER:GROUP sets the group",
    **dict.fromkeys(("--authfile", "--pull", "--tls-verify"), _OWN_IMAGES),
    "--tmpfs": "all but what -v binds is in memory or lost afterwards",
}
_OUTPUT = "name the file after the image: `reprobuild export IMAGE FILE`"
_JSON = "--json has all fields, for jq"
_SURE = "it asks nothing, so there is nothing to force"

OPTION_HINTS = {
    "run": _RUN,
    "twice": {
        **_RUN,
        **dict.fromkeys(
            ("-i", "--interactive", "-t", "--tty"), "omit it: the runs have no terminal and no input"
        ),
        "--rm": f"omit it: {_NOTHING_KEPT}",
    },
    "images": {
        **dict.fromkeys(("-a", "--all"), "candidates are listed too, so these are all"),
        **dict.fromkeys(("--digests", "--no-trunc"), "--json has whole digests"),
        **dict.fromkeys(("-f", "--filter", "--format"), _JSON),
    },
    "inspect": dict.fromkeys(("-f", "--format", "--type"), _JSON),
    "remove": dict.fromkeys(("-f", "--force"), _SURE),
    "clean": {
        **dict.fromkeys(("-f", "--force"), _SURE),
        "-a": "--all removes every image, with its name",
    },
    "export": dict.fromkeys(("-o", "--output"), _OUTPUT),
    "load": dict.fromkeys(
        ("-i", "--input"), "it copies an image of the embedded store; an archive is for `docker load -i`"
    ),
    "push": dict.fromkeys(("-a", "--all-tags"), "name one: `reprobuild push IMAGE REGISTRY/NAME:TAG`"),
    "doctor": {"--version": "`reprobuild --version` shows it"},
}
"""Options of Docker's and Podman's commands by our command, and what it does instead."""

ARGUMENT_HINTS = {"images": "it lists all images; `reprobuild inspect NAME` shows one"}
"""Commands that take fewer arguments than Docker's."""
