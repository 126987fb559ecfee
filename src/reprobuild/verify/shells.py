"""Startup files that a shell or login reads before a user's program. Pure.

An interactive shell and a login shell run files of the system and of the user (bash(1), "INVOCATION").
enroot and Apptainer run files of their own (enroot, src/docker.sh; Apptainer, "Environment and Metadata").
The manifest names none of them, so each is judged by what it says: the text that Debian ships, and behind it
lines that set something harmless. Any other line is a difference; but one that the installer of a known tool
wrote into a shell's file is named to whoever reads on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from .commands import LOCALES, is_harmless
from .compare import Difference
from .context import Context
from .links import folders, resolve

_FOLDER = "etc/profile.d"
_OF_SYSTEM = (
    "etc/profile",
    "etc/bash.bashrc",
    "etc/environment",
    "etc/rc",
    "etc/rc.local",
    f"{_FOLDER}/*.sh",
)
_OF_LAUNCHERS = ("etc/environment", "etc/rc", "etc/rc.local")
_OF_LAUNCHERS_OF_USER = ("/.pam_environment", "/.ssh/environment", "/.ssh/rc")
_OF_APPTAINER = (".singularity.d", ".singularity.d/*", "singularity")
_OF_USER = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".profile", ".pam_environment"),
    *(".ssh/environment", ".ssh/rc"),
)
_SKELETON = "etc/skel"
"""What `useradd` copies into a new home."""

_SHIPPED = (
    "usr/share/base-files/profile",
    "usr/share/base-files/dot.bashrc",
    "usr/share/base-files/dot.profile",
)
"""Locked files with the text of ``/etc/profile`` and of root's two."""

_DEBIAN = {
    "af4f09eb27cb7f140dfee7f3285574a68ca50ac1db2019652cef4196ee346307": 1994,  # bash.bashrc of Debian 12
    "ccbe82649c573d2d5fadcd04d4fb7fe93d5d9bc473a6aa2e3e6a5ea57e6d385c": 1997,  # of Debian 13
    "afae8986f549c6403410e029f9cce7983311512d04b1f02af02e4ce0af0dd2bf": 3526,  # skel/.bashrc
    "28b4a453b68dde64f814e94bab14ee651f4f162e15dd9920490aa1d49f05d2a4": 807,  # skel/.profile
    "0aefd1d6da5bd2ebe7481a88c8033d0ef2641625e3ffc14c9a895ab0944465dc": 726,  # bash-completion of Debian 12
    "f6b5063c8437ad9adb5d2c9c75095f80b00e1b3110f44efe82ee44b2905ce82e": 747,  # of Debian 13
    "20bcd1cd06454a6f6c4d77486289e51a5238bf4af19fbc57061f4a8f38a64025": 596,  # libdebuginfod-common
    "70621a3b586d3d523b020e76977633b444a70013ba50e1ea901a3a07a676f15f": 757,  # gawk
}
"""Texts that Debian's packages put there, by SHA-256, with their sizes."""

_INPUTRC = {"efd629d8b3569cf2bdeac6586ffde95e6e277df85142753dc3a1629c657b87b1"}
"""``/etc/inputrc`` of Debian 12, which readline-common puts there."""

_USERS = "etc/passwd"
_LONGEST_LINE = 1000

_QUOTED = r""""[^"$`\\]*"|'[^']*'"""
_BARE = r"[^\s\"'$`\\;&|<>(){}*?#~]"
_WORD = rf"(?:{_QUOTED}|{_BARE}*)"
_END = r"\s*;?\s*(?:#.*)?"
_SETS = re.compile(rf"(?:export\s+)?([A-Za-z_]\w*)=({_WORD}){_END}")
_PATH = re.compile(rf"(?:export\s+)?PATH=(\"?)([^\"'`;&|<>()\s]*)\1{_END}")
_ALIAS = re.compile(rf"alias\s+(?!\.=)([\w.+-]+)=({_WORD}){_END}")
_NAMED = re.compile(rf"(?:export|unset)\s+([A-Za-z_]\w*){_END}")
_PLAIN = re.compile(
    r"(?:umask\s+[0-7]+|ulimit\s+-[cn]\s+\w+|set\s+-o\s+(?:vi|emacs)|stty\s+-ixon|true|fi|cat\s+/etc/motd"
    r"|mesg n(?: 2> ?/dev/null)?(?: \|\| true)?|(?:shopt\s+-[su]|bind)\s(?:[\w:\s\"'\\-]*[\w\"'])?"
    rf"|(?:echo|printf)(?:\s+(?:{_QUOTED}|{_BARE}+))*"
    r"|(?:export\s+)?PROMPT_COMMAND=([\"'])history -a\1"
    r"|(?:export\s+)?PS[0-4]=(?:\"(?:[^\"`$]|\$(?!\())*\"|'(?:[^'`$]|\$(?!\())*'))?"
    rf"{_END}"
)
_READS = re.compile(rf"(?:\.|source)\s+(\"?)(/[\w./-]+)\1{_END}")
_CONDITION = re.compile(
    r"(?:(?:el)?if\s+)?(?:!\s+)?(\[\[?)\s[^`();&|<>]*?\s\]{1,2}\s*(?:;\s*then\b|&&|\|\||$)\s*|(?:then|else)\b\s*"
)
"""What may precede a command and runs nothing itself."""

_RUNS = frozenset(("ENV", "HOME", "IFS", "LD_LIBRARY_PATH", "PROMPT_COMMAND", "PYTHONPATH", "SHELL"))
"""Variables that a startup file may not set, even if the image may."""

_WORDS_OF_SHELLS = frozenset(
    (
        *("alias", "bind", "echo", "elif", "else", "eval", "export", "fi", "if", "mesg", "printf"),
        *("set", "shopt", "source", "stty", "then", "true", "ulimit", "umask", "unset"),
    )
)
"""What a line may begin with that counts as harmless, so that no alias may have the name."""

_OF_TOOLS = re.compile(
    r"(?:(?:\\?\.|source)\s+[\"']?[~\w./-]*(?:/\.cargo/env|/\.local/bin/env|/nvm\.sh|/bash_completion|[./]fzf\.bash"
    r"|/sdkman-init\.sh|/(?:path|completion)\.bash\.inc)[\"']?"
    r"|cd\s+[\w./~-]+|eval\s+\"\$\((?:atuin|dircolors|direnv|fzf|mise|starship|uv|zoxide)[\w\s=-]*\)\")"
    rf"{_END}"
)
"""Lines that installers of tools write, and what stands behind them is the tool's. Those of conda and of
pyenv do not count: they put another Python in the place of the locked one."""


def is_read_by_shells(path: str) -> bool:
    """Whether `shells` needs the content of a file, by its path without a leading slash."""
    return (
        path in (_USERS, *_SHIPPED)
        or any(fnmatchcase(path, each) for each in _OF_SYSTEM)
        or path.endswith(tuple(f"/{name}" for name in _OF_USER))
    )


def homes(context: Context) -> list[str]:
    """Return the folders of users, links followed, with that from which new ones are copied."""
    lines = context.tree.kept.get(_USERS, b"").decode("utf-8", "replace").splitlines()
    fields = (line.split(":") for line in lines)
    named = [each[5] for each in fields if len(each) == 7]
    places = [*named, "root", context.env.get("HOME", ""), _SKELETON]
    found = {resolve(each, context.tree.files) for each in places}
    return sorted(each for each in found if each)


def shells(context: Context) -> Iterator[Difference]:
    """Yield what shells and launchers run that is neither Debian's nor known to be harmless.

    Needs the content of the files that `is_read_by_shells` names.
    """
    if context.lock.base is not None:
        return  # it has files of its own there, and the lock does not tell their content; see `unknown`
    if (record := context.tree.files.get(_FOLDER)) is not None and record.kind != "dir":
        yield Difference(f"/{_FOLDER}", "type", "dir", record.kind)
    for path, home in _read(context):
        odd = _odd_lines(path, home, context)
        if line := next((line for line in odd if not _is_tool_s(line, path)), None):
            yield Difference(f"/{path}", "runs at start", "", _shown(line))


def unknown(context: Context) -> Iterator[str]:
    """Yield what shells run and torch.compile starts whose effect is not known."""
    files, named = context.tree.files, context.named
    own = {f"{home}/{name}" for home in homes(context) for name in (".zshrc", ".zshenv", ".config/fish/*")}
    completed = any(path in files for path in _COMPLETION)
    patterns = (*_OTHER_SHELLS, *sorted(own), *(("etc/bash_completion.d/*",) if completed else ()))
    keys = {"etc/inputrc", *(f"{home}/.inputrc" for home in homes(context))}
    for path in context.added:
        if any(fnmatchcase(path, each) for each in patterns):
            yield f"/{path} (shells run it)"
        elif path in keys and files[path].content not in _INPUTRC:
            yield f"/{path} (shells and Python's prompt read it)"
    for path, home in _read(context):
        odd = _odd_lines(path, home, context)
        if line := next((line for line in odd if context.lock.base or _is_tool_s(line, path)), None):
            yield f"/{path} (shells run it): {_shown(line)}"
    for folder in folders(context.env.get("PATH", ""), context.start, files):
        for name in _COMPILERS:
            if f"{folder}/{name}" in files and f"{folder}/{name}" not in named:
                yield f"/{folder}/{name} (torch.compile runs it)"
    for user, shell in _logins(context):
        if (place := resolve(shell, files)) in files and place not in named:
            yield f"{shell} (the shell of {user})"


_COMPLETION = ("etc/bash_completion", "usr/share/bash-completion/bash_completion")
_OTHER_SHELLS = (
    *_COMPLETION,
    *("etc/zsh/*", "etc/zshenv", "etc/zshrc", "etc/fish/*"),
)
"""Files of shells that a lock seldom has, and what ``.bashrc`` of `_SKELETON` runs if it is there."""

_COMPILERS = ("c++", "cc", "clang", "clang++", "g++", "gcc", "ld", "ninja", "nvcc", "ptxas")


def _logins(context: Context) -> Iterator[tuple[str, str]]:
    for line in context.tree.kept.get(_USERS, b"").decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if len(fields) == 7:
            yield fields[0], fields[6]


def _read(context: Context) -> Iterator[tuple[str, str]]:
    """Yield each file that is read, and the home of the user who reads it (empty: all do)."""
    files = context.tree.files
    users = {f"{home}/{name}": home for home in homes(context) for name in _OF_USER}
    for path, record in sorted(files.items()):
        is_folder = record.kind == "dir" or path in context.named
        if not is_folder and (
            path in users or any(fnmatchcase(path, each) for each in (*_OF_SYSTEM, *_OF_APPTAINER))
        ):
            yield path, users.get(path, "")


def _shown(line: str) -> str:
    """Return a line's start, without what a terminal would obey."""
    return "".join(each if each.isprintable() else "?" for each in line[:200])


def _is_launcher_s(path: str) -> bool:
    """Return whether a file is read by what starts a container or logs a user in, not by a shell."""
    launched = path in _OF_LAUNCHERS or path.endswith(_OF_LAUNCHERS_OF_USER)
    return launched or any(fnmatchcase(path, each) for each in _OF_APPTAINER)


def _is_tool_s(line: str, path: str) -> bool:
    """Return whether a shell's file has a line that a tool's installer wrote."""
    return not _is_launcher_s(path) and _OF_TOOLS.fullmatch(line) is not None


def _odd_lines(path: str, home: str, context: Context) -> Iterator[str]:
    """Yield the lines of a file that are not known to be harmless, without the conditions before them."""
    files, kept = context.tree.files, context.tree.kept
    place = resolve(path, files)
    if place is None or place not in files:
        return  # a link to nothing
    if any(fnmatchcase(path, each) for each in _OF_APPTAINER):
        yield f"/{path}"
        return
    data = kept.get(path, kept.get(place))
    if data is None:
        yield f"its text was not read: /{place}"
        return
    text = _behind_known(data, context).decode("utf-8", "replace")
    values: dict[str, str] = {**context.env, **({"HOME": f"/{home}"} if home else {})}
    for line in text.replace("\r", "\n").split("\n"):
        if len(line) > _LONGEST_LINE:
            yield line
            continue
        command = line.strip(" \t")
        while found := _CONDITION.match(command):
            command = command[found.end() :]
        command = _expanded(re.sub(r"\s*;\s*fi$", "", command), values)
        pieces = command.split(" && ")
        if not all(_is_plain(each, home, context) for each in pieces):
            yield command.strip() or "a blank"
        for each in pieces:
            if assigned := _SETS.fullmatch(each):
                name, value = assigned[1], assigned[2].strip("\"'")
                # one of two values, by a condition: nobody can tell which
                values[name] = value if values.get(name, value) == value else "$"
            elif (named := _NAMED.fullmatch(each)) and each.startswith("unset"):
                values[named[1]] = "$"


def _expanded(line: str, values: Mapping[str, str]) -> str:
    """Return a line with the values of variables that are known and simple; ``$PATH`` stays."""

    def value(found: re.Match[str]) -> str:
        known = values.get(found[1] or found[2], "$")
        return known if re.fullmatch(r"[\w./:@+-]*", known) else found[0]

    if "'" in line:
        return line
    line = re.sub(r"(?<=[=:\s])~(?=/)", values.get("HOME", "~"), line)
    return re.sub(r"\$(?!PATH\b|\{PATH\b)(?:(\w+)|\{(\w+)\})", value, line)


def _behind_known(data: bytes, context: Context) -> bytes:
    """Return the rest of a file after the beginning that Debian or a locked file has."""
    known = dict(_DEBIAN)
    for path in _SHIPPED:
        if path in context.named and path in context.tree.kept:
            known[context.named[path].content] = len(context.tree.kept[path])
    for digest, size in known.items():
        if hashlib.sha256(data[:size]).hexdigest() == digest:
            return data[size:]
    return data


def _is_plain(line: str, home: str, context: Context) -> bool:
    """Return whether a line changes nothing that the lock decides."""
    if _PLAIN.fullmatch(line):
        return True
    if found := _PATH.fullmatch(line):
        return _leaves_programs(found[2], home, context)
    if found := _ALIAS.fullmatch(line):
        return _is_free(found[1], found[2].strip("\"'"), context)
    if found := _READS.fullmatch(line):  # what is judged itself
        return found[2].lstrip("/") in (*_OF_SYSTEM, *(f"{home}/{name}" for name in _OF_USER if home))
    if found := _NAMED.fullmatch(line) or _SETS.fullmatch(line):
        name, value = found[1], "".join(found.groups()[1:]).strip("\"'")
        is_prompt = re.fullmatch(r"PS[0-4]", name) is not None
        return _may_be_set(name, value, context) and not (is_prompt and re.search(r"[$`]", value))
    return False


def _is_free(alias: str, command: str, context: Context) -> bool:
    """Return whether an alias hides no locked program, or only gives one options."""
    if alias in context.locked_programs:
        if command in context.locked_programs:  # as python is python3
            one, other = (
                resolve(f"{context.locked_programs[name]}/{name}", context.tree.files)
                for name in (alias, command)
            )
            return one == other
        options = re.fullmatch(rf"{re.escape(alias)}((?:\s+-[\w=-]+|\s+\$LS_OPTIONS)+)", command)
        return options is not None and not _STARTS_OTHERS.fullmatch(alias)
    return alias not in _WORDS_OF_SHELLS


_STARTS_OTHERS = re.compile(r"python[\d.]*|(?:ba|da)?sh|env")


def _may_be_set(name: str, value: str, context: Context) -> bool:
    """Return whether a file may set a variable: one of language, or one that no locked program reads."""
    taken = name in _RUNS or (name in context.env and name not in LOCALES)
    return not taken and is_harmless(name, value, context)


def _leaves_programs(text: str, home: str, context: Context) -> bool:
    """Return whether a PATH with more folders finds every locked program where it was found before."""
    before, inherited, _ = re.sub(r"\$\{PATH\}", "$PATH", text).partition("$PATH")
    before = re.sub(r"\$(HOME\b|\{HOME\})|~(?=/|$)", f"/{home}", before).rstrip(":")
    if not inherited or "$" in before or (not home and "~" in before):
        return False
    programs = context.locked_programs
    files = context.tree.files
    return not any(
        f"{folder}/{name}" in files for folder in folders(before, context.start, files) for name in programs
    )
