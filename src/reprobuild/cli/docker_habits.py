"""Hints for commands and options that a user of Docker types by habit. Imports nothing."""

from __future__ import annotations

_NOTHING_RUNS = "nothing runs in the background: a run ends with its program"

_NO_CONTAINERS = "there are no containers to keep: a run ends with its program, and leaves nothing"
_IN_ENGINES = "Docker and Podman have that: `reprobuild load` copies an image into them"

COMMAND_HINTS = {
    **dict.fromkeys(
        ("attach", "events", "exec", "kill", "logs", "pause", "port", "ps", "restart", "stats"), _NOTHING_RUNS
    ),
    **dict.fromkeys(("checkpoint", "healthcheck", "stop", "top", "unpause", "wait"), _NOTHING_RUNS),
    **dict.fromkeys(("container", "init", "pod", "rename", "rm", "update"), _NO_CONTAINERS),
    **dict.fromkeys(("compose", "config", "context", "generate", "kube", "machine", "network"), _IN_ENGINES),
    **dict.fromkeys(("node", "plugin", "secret", "service", "stack", "swarm", "volume"), _IN_ENGINES),
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
    **dict.fromkeys(
        ("mount", "umount", "unmount"), "`reprobuild export --format squashfs` gives a file to mount"
    ),
    "prune": "`reprobuild clean` frees the space of what no image needs",
    "pull": "an image in a registry is for other engines: `docker pull`, `podman pull`",
    "rmi": "`reprobuild remove` removes the name of an image, and `reprobuild clean` frees its space",
    "save": "`reprobuild export` writes an image to a file",
    "scout": "`reprobuild lock --report FILE --osv SOURCE` lists the known vulnerabilities of a lock",
    "search": "`reprobuild versions` lists what your index has PyTorch for",
    "start": "`reprobuild run` runs a command in an image",
    "system": "`reprobuild clean` frees the space of what no image needs",
    "tag": "`reprobuild image LOCK --tag NAME` names an image; `push` names it in a registry",
    "trust": "`reprobuild verify` verifies who signed an image; `push --sign-key` signs",
    "unshare": "`reprobuild run` runs a command in an image",
    "untag": "`reprobuild remove` removes the name of an image",
    "version": "`reprobuild --version` shows it; `reprobuild versions` lists CUDA's",
}
"""Docker's commands, with their equivalents here."""


def _options(*rows: tuple[str, str]) -> dict[str, str]:
    """Return the hint of each option; a row has options that share one."""
    return {option: hint for options, hint in rows for option in options.split()}


_HOST_NETWORK = "the network of the host is shared, so a port of the program is one of this machine"
_NOTHING_KEPT = "nothing of a run is kept"
_NO_PRIVILEGES = "no privileges can be added"
_PROCESSORS = "`taskset` before the command limits the processors"
_MEMORY = "-m limits the memory, swap included"
_DISKS = "reading and writing is not limited; `ionice -c 3` before `reprobuild` lets other programs go first"
_OWN_CGROUP = "a run has a control group of its own, whose limits are -m and --pids-limit"
_UNWATCHED = "nothing watches a run; it ends with the status of its program"
_TMPFS = "all but what -v binds is in memory or lost afterwards"
_PLATFORM = "an image runs on its own platform; `reprobuild image --platform` chooses it"
_ONE_PLATFORM = "an image has one platform; `reprobuild image --platform` chooses it"
_WINDOWS = "that is for containers of Windows"

HOST_NAME = "the host name is always `reprobuild`, so that no result depends on it"

_RUN = _options(
    (
        "--gpus --device --runtime",
        "GPUs are passed in if there are any; --gpu require insists, -e CUDA_VISIBLE_DEVICES=0 chooses",
    ),
    ("-p --publish -P --publish-all --expose --ip --ip6 --link", _HOST_NETWORK),
    ("--link-local-ip --mac-address --network-alias", _HOST_NETWORK),
    ("--net --network", f"{_HOST_NETWORK}; --no-network gives it none"),
    ("--name --restart --cidfile --replace", f"{_NOTHING_KEPT}, so it has no name"),
    ("-d --detach", "it runs in the foreground; `nohup`, tmux or systemd-run keep it running"),
    ("-a --attach --detach-keys --sig-proxy", "input, output, errors and signals are always passed on"),
    ("--entrypoint", "name the program after the image"),
    ("--mount --secret", "-v SRC:DST[:ro] binds a folder or file"),
    ("--ipc --shm-size --shm-size-systemd", "its shared memory has 2 GB; -v binds a folder for more"),
    ("--privileged --device-cgroup-rule", "no such mode; for NVIDIA devices, see --gpu"),
    ("-c --cpus --cpuset-cpus --cpuset-mems --cpu-shares --cpu-period --cpu-quota", _PROCESSORS),
    ("--cpu-rt-period --cpu-rt-runtime", "`chrt` before the command sets its scheduling, as root"),
    ("--memory-reservation --memory-swap --memory-swappiness --kernel-memory", _MEMORY),
    ("--oom-kill-disable --oom-score-adj", _MEMORY),
    ("--blkio-weight --blkio-weight-device --device-read-bps --device-read-iops", _DISKS),
    ("--device-write-bps --device-write-iops", _DISKS),
    ("--cgroup-conf --cgroup-parent --cgroupns --cgroups", _OWN_CGROUP),
    ("--cpu-count --cpu-percent --io-maxbandwidth --io-maxiops --isolation", _WINDOWS),
    ("--read-only", "a run changes nothing of its image; -v SRC:DST:ro binds a folder read-only"),
    ("--arch --os --platform --variant", _PLATFORM),
    (
        "--env-file --env-host --env-merge --http-proxy --unsetenv --unsetenv-all",
        "-e NAME=VALUE sets a variable, -e NAME passes one on; no others are passed",
    ),
    ("--cap-add --cap-drop --security-opt --seccomp-policy --userns", _NO_PRIVILEGES),
    ("--gidmap --uidmap --subgidname --subuidname --use-api-socket", _NO_PRIVILEGES),
    (
        "--add-host --dns --dns-opt --dns-option --dns-search --hosts-file --no-hosts --no-hostname",
        "/etc/hosts and /etc/resolv.conf are those of this machine",
    ),
    ("--domainname --hostname", HOST_NAME),
    ("--pid --uts", "processes and name are always its own"),
    ("--personality", "`setarch` before the command sets it"),
    ("--annotation --label -l --label-file --log-driver --log-opt --no-log", _NOTHING_KEPT),
    ("--pod --pod-id-file --conmon-pidfile --pidfile --rmi --volumes-from --requires", _NOTHING_KEPT),
    ("--health-cmd --health-interval --health-log-destination --health-max-log-count", _UNWATCHED),
    ("--health-max-log-size --health-on-failure --health-retries --health-start-interval", _UNWATCHED),
    ("--health-start-period --health-startup-cmd --health-startup-interval", _UNWATCHED),
    ("--health-startup-retries --health-startup-success --health-startup-timeout", _UNWATCHED),
    ("--health-timeout --no-healthcheck --sdnotify", _UNWATCHED),
    ("--stop-timeout --timeout", "`timeout` before the command ends it"),
    ("--tz", "-e TZ=NAME sets the time zone"),
    ("--ulimit", "`-- sh -c 'ulimit …; exec PROGRAM'` sets a limit"),
    ("--umask", "`-- sh -c 'umask …; exec PROGRAM'` sets it"),
    ("--sysctl", "settings of the kernel are those of this machine"),
    (
        "--init --init-path --init-ctr --stop-signal --systemd",
        "its first process is an init, which passes signals on",
    ),
    ("--group-add --group-entry", "-u USER:GROUP sets the group"),
    ("--hostuser --passwd --passwd-entry", '`user = "app:1000"` in the request gives the image a user'),
    ("--authfile --cert-dir --creds --decryption-key", "images are those of `reprobuild images`"),
    (
        "--disable-content-trust --pull --retry --retry-delay --tls-verify",
        "images are those of `reprobuild images`",
    ),
    ("--rootfs", "it runs images, not folders: those of `reprobuild images`"),
    ("--tmpfs --chrootdirs --image-volume --read-only-tmpfs --storage-opt", _TMPFS),
    ("--volume-driver", "-v SRC:DST[:ro] binds a folder or file of this machine"),
    ("--preserve-fd --preserve-fds", "input, output and errors are passed on, and nothing else"),
    ("--module", "nothing configures a run but its own options"),
)

_NO_DOCKERFILE = (
    "there is no Dockerfile: name a request or a lock; a Dockerfile starts `FROM` the image's name"
)
_OF_DOCKERFILE = "it belongs in a Dockerfile that starts `FROM` the image's name"
_NEVER_STALE = (
    "each layer is made of what the lock names, so none is stale; `reprobuild lock --upgrade` moves pins"
)
_LIMITS = "REPROBUILD_MEMORY and REPROBUILD_PROCESSES limit the steps of a build"
_NO_NETWORK = "steps of a build have no network; files come from your index and mirror"
_ONE_LAYOUT = "the layers are always the same ones, so that the digest is; `push --compression` chooses gzip"
_DIGEST = "--json has the digest"
_REGISTRIES = "logins, certificates and proxies are those of this machine"
_JSON = "--json has all fields, for jq"
_SURE = "it asks nothing, so there is nothing to force"
_ALWAYS_WHOLE = "sizes are always shown; --json has them in bytes"
_KEEPS = "`reprobuild remove` takes a name away; what no name needs goes, and nothing else"

_IMAGE = _options(
    ("-t", "--tag NAME names the image"),
    ("-f --file --build-arg --build-context --target --ignorefile --stdin --call --check", _NO_DOCKERFILE),
    ("--cpp-flag --skip-unused-stages", _NO_DOCKERFILE),
    ("--annotation --label --env -e --unsetenv --unsetlabel --identity-label --volume", _OF_DOCKERFILE),
    ("--secret --ssh --allow --add-host --unsetannotation --inherit-labels", _OF_DOCKERFILE),
    ("--cache-from --cache-to --cache-ttl --no-cache --no-cache-filter --pull --layers", _NEVER_STALE),
    ("--source-policy-file --timestamp --source-date-epoch --rewrite-timestamp", _NEVER_STALE),
    ("--cpu-period --cpu-quota -c --cpu-shares --cpuset-cpus --cpuset-mems --cgroup-parent", _LIMITS),
    ("-m --memory --memory-swap --ulimit --shm-size --cgroupns", _LIMITS),
    ("--network --dns --dns-option --dns-search --http-proxy --no-hosts --no-hostname", _NO_NETWORK),
    ("--compress --squash --squash-all --disable-compression --omit-history --compat-volumes", _ONE_LAYOUT),
    ("--created-annotation", _ONE_LAYOUT),
    ("--iidfile --metadata-file --logfile --logsplit", _DIGEST),
    ("--load", "`reprobuild load` copies an image into Docker or Podman"),
    ("--push", "`reprobuild push` pushes an image to a registry"),
    ("-o --output --format", "`reprobuild export` writes an image to a file"),
    ("--all-platforms --arch --os --os-feature --os-version --variant", "--platform linux/ARCH chooses it"),
    ("--manifest", _ONE_PLATFORM),
    (
        "--attest --provenance --sbom --sbom-image-output --sbom-merge-strategy",
        "evidence is kept beside each image",
    ),
    (
        "--sbom-output --sbom-purl-output --sbom-scanner-command",
        "`reprobuild convert --to cyclonedx` writes it",
    ),
    ("--sbom-preset --sbom-scanner-image", "`reprobuild convert --to cyclonedx` writes it"),
    ("--sign-by", "--sign-key FILE signs the evidence"),
    ("--device", "--gpu chooses whether the GPU is tested"),
    ("--isolation --cap-add --cap-drop --security-opt --userns --userns-gid-map", _NO_PRIVILEGES),
    ("--userns-gid-map-group --userns-uid-map --userns-uid-map-user --ipc --pid --uts", _NO_PRIVILEGES),
    ("--runtime-flag --hooks-dir --group-add", _NO_PRIVILEGES),
    ("--rm --force-rm", "no containers are left"),
    ("--progress", "-v before `image` shows each command, -q no progress"),
    ("-D --debug", "-v shows each command"),
    ("--jobs", "it uses the processors that `taskset` before `reprobuild` leaves it"),
    ("--authfile --cert-dir --creds --decryption-key --tls-verify --retry --retry-delay", _REGISTRIES),
    ("--disable-content-trust", "every file is verified by the lock's hash"),
)

OPTION_HINTS = {
    "run": _RUN,
    "twice": {
        **_RUN,
        **_options(
            ("-i --interactive -t --tty", "omit it: the runs have no terminal and no input"),
            ("--rm", f"omit it: {_NOTHING_KEPT}"),
        ),
    },
    "image": _IMAGE,
    "images": _options(
        ("-a --all", "candidates are listed too, so these are all"),
        ("--digests --no-trunc", "--json has whole digests"),
        ("-f --filter --format --sort", _JSON),
        ("-n --noheading", _JSON),
        ("--tree --history", "`reprobuild inspect NAME` shows what is in an image"),
    ),
    "inspect": _options(
        ("-f --format --type", _JSON),
        ("-s --size -H --human --no-trunc", _ALWAYS_WHOLE),
        ("--platform", _ONE_PLATFORM),
        ("-l --latest", "name the image"),
        ("-t", "it shows images only"),
    ),
    "remove": _options(
        ("-f --force -i --ignore", _SURE),
        ("-a --all", "`reprobuild clean --all` removes every image"),
        ("--no-prune --platform", "it removes the name alone; `reprobuild clean` frees the space"),
    ),
    "clean": _options(
        ("-f --force", _SURE),
        ("-a", "--all removes every image, with its name"),
        ("--filter --volumes --external --build --keep-storage --reserved-space", _KEEPS),
    ),
    "export": _options(
        ("-o --output", "name the file after the image: `reprobuild export IMAGE FILE`"),
        ("--platform -m --multi-image-archive", "a file has one image: name it"),
        ("--compress --uncompressed", "--compression gzip is for tools that do not support zstd"),
    ),
    "load": _options(
        ("-i --input", "it copies an image of the embedded store; an archive is for `docker load -i`"),
        ("--platform", _ONE_PLATFORM),
    ),
    "push": _options(
        ("-a --all-tags", "name one: `reprobuild push IMAGE REGISTRY/NAME:TAG`"),
        ("--platform", _ONE_PLATFORM),
        (
            "--compress --compression-format --compression-level --force-compression",
            "--compression gzip chooses it",
        ),
        ("--digestfile", _DIGEST),
        ("--sign-by --sign-by-sigstore --sign-by-sigstore-private-key", "--sign-key FILE signs the evidence"),
        ("--sign-passphrase-file", "REPROBUILD_SIGN_PASSPHRASE_FILE names it"),
        ("-f --format --encrypt-layer --encryption-key --remove-signatures", "an image is pushed as it is"),
        ("--authfile --cert-dir --creds --disable-content-trust --tls-verify", _REGISTRIES),
        ("--retry --retry-delay", "a failed transfer is tried again by itself"),
    ),
    "doctor": {"--version": "`reprobuild --version` shows it"},
}
"""Options of Docker's and Podman's commands by our command, and what it does instead."""

ARGUMENT_HINTS = {"images": "it lists all images; `reprobuild inspect NAME` shows one"}
"""Commands that take fewer arguments than Docker's."""
