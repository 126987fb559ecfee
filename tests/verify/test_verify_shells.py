"""What shells, logins and launchers read before a user's program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.layers.image_documents import file_manifest
from reprobuild.oci.tar_writer import Record
from reprobuild.verify.check import Checked, check_tree, is_kept
from reprobuild.verify.shells import _DEBIAN
from support.trees import image, sha

PASSWD = "root:x:0:0:root:/root:/bin/bash\napp:x:1000:1000::/srv/app:/bin/sh\n"
OF_DEBIAN = '# as Debian ships it\n[ -z "$PS1" ] && return\nif odd; then\n  . /etc/more\nfi\n'
SKELETON = {name: Path("/etc/skel", name) for name in (".bashrc", ".profile")}
REAL = {
    name: path.read_text()
    for name, path in SKELETON.items()
    if path.is_file() and sha(path.read_bytes()) in _DEBIAN
}
SHIPPED = "usr/share/base-files/dot.bashrc"
LOCKED = [
    Record("opt/venv/bin/python", "link", 0o777, "python3"),
    Record("opt/venv/bin/python3", "link", 0o777, "/usr/bin/python3.11"),
    Record("usr/bin/python3.11", "file", 0o755, "p"),
    Record("usr/bin/bash", "file", 0o755, "b"),
    Record(SHIPPED, "file", 0o644, sha(OF_DEBIAN.encode())),
]


def checked(
    files: dict[str, str], *more: Record, env: dict[str, str | None] | None = None, **config: Any
) -> Checked:
    """What `check` says of an image with some files more; a text of ``-> PATH`` is a link."""
    texts = {"etc/passwd": PASSWD, SHIPPED: OF_DEBIAN, **files}
    records = [
        Record(path, "link", 0o777, text[3:])
        if text.startswith("-> ")
        else Record(path, "file", 0o755 if "bin/" in path else 0o644, sha(text.encode()))
        for path, text in texts.items()
    ]
    tree = image(*LOCKED, *records, *more, env=env)
    own = tree.kept["opt/reprobuild/manifest.tsv"] + file_manifest(LOCKED)
    kept = {**tree.kept, "opt/reprobuild/manifest.tsv": own}
    for path, text in texts.items():
        if is_kept(path, len(text)) and not text.startswith("-> "):
            kept[path] = text.encode()
    return check_tree(replace(tree, config={**tree.config, **config}, kept=kept), "x", own)


def found(files: dict[str, str], **more: Any) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in checked(files, **more).differences]


@pytest.mark.parametrize(
    "line",
    [
        "export OMP_NUM_THREADS=7",
        "export A=1; export OMP_NUM_THREADS=7",
        "export A=1 OMP_NUM_THREADS=7",
        "declare -x OMP_NUM_THREADS=7",
        "[ -n x ] && OMP_NUM_THREADS=7",
        "OMP_NUM_THREADS=7 # x",
        "unset CUBLAS_WORKSPACE_CONFIG",
        "export LD_LIBRARY_PATH=/opt/mine",
        "export LD_PRELOAD=/opt/mine.so",
        "PYTHONPATH=/opt/mine",
        "export PATH=/opt/mine/bin:$PATH",
        "[ -d /opt/mine ] && export PATH=/opt/mine/bin:$PATH",
        "export PATH=/usr/bin",
        "alias python3='/opt/mine/bin/python3'",
        "python3() { /opt/mine/bin/python3; }",
        "function python3 { /opt/mine/bin/python3; }",
        "# x\rexport OMP_NUM_THREADS=7",
        "# x\\\nexport OMP_NUM_THREADS=7",
        # what nobody can judge
        ". /opt/mine.sh",
        "/opt/mine.sh",
        "# x\r/opt/mine",
        "# x\\\n/opt/mine",
        "PROMPT_COMMAND='mine'",
        "PS1='$(mine)'",
        "echo `mine`",
        'echo "$(mine)"',
        "echo x > ~/.bash_aliases",
        "alias x='a\nmine\n'",
        "alias umask=mine\numask 022",
        "alias .=mine",
        "alias bash='mine'",
        "alias python3='python3 -I'",
        "[ a; mine ]",
        "[ $(mine) ] && true",
        "[ a ] && mine",
        "if [ a ]; then mine; fi",
        "else mine",
        "X=/opt/mine\nexport PATH=$X/bin:$PATH",
        "X=/a\n[ b ] && X=/opt/mine\nexport PATH=$X/bin:$PATH",
        "X=/opt/mine\n[ b ] && X=/a\nexport PATH=$X/bin:$PATH",
        "export PATH=$UNSET/bin:$PATH",
        "export PATH='$HOME/x:$PATH'",
        "alias if=mine\nif [ a ]; then A=1; fi",
        "X=/a\nX=/opt/mine && true\nexport PATH=$X/bin:$PATH",
        "X=/a\nunset X\nexport PATH=$X/opt/mine/bin:$PATH",
        "PS1='$(mine)'\nalias x=y",
        'PS1="\\$(mine)"',
        "PROMPT_COMMAND='history -a; mine'",
        "A=1 && mine",
        "echo 'a && mine'b",
        ". /root2/.bashrc",
        ". ./.bashrc",
        ". /etc/profile.d/../../opt/mine",
        "alias python=bash",
        'eval "$(conda shell.bash hook)"',
        'eval "$(pyenv init -)"',
        'eval "$(/opt/mine init bash)"',
        "source /opt/ros/setup.bash",
        f"echo{' ' * 900}$(mine)",
        f"bind{' ' * 900}`mine`",
        f"{'then ' * 100_000}true",
    ],
)
def test_a_line_of_a_shell_s_file_that_sets_what_the_lock_decides(line: str) -> None:
    paths = ["etc/profile.d/zz.sh", "root/.bashrc"]
    files = {**dict.fromkeys(paths, f"{OF_DEBIAN}{line}\n"), "opt/mine/bin/python3": "x"}
    assert found(files) == [(f"/{path}", "runs at start") for path in paths]


def test_the_files_of_shells_and_the_homes_of_users() -> None:
    paths = [
        *("etc/bash.bashrc", "etc/profile", "etc/skel/.bashrc", "opt/home/.profile", "root/.bash_aliases"),
        *("root/.bash_login", "root/.bash_profile", "root/.profile", "srv/app/.bashrc"),
    ]
    files = dict.fromkeys(paths, "export OMP_NUM_THREADS=7\n")
    assert found(files, env={"HOME": "/opt/home"}) == [(f"/{path}", "runs at start") for path in paths]


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"etc/environment": "OMP_NUM_THREADS=7\n"}, "etc/environment"),
        ({"etc/environment": "LD_PRELOAD=/x\n"}, "etc/environment"),
        ({"etc/rc": "mine\n"}, "etc/rc"),
        ({"etc/rc.local": "mine\n"}, "etc/rc.local"),
        ({".singularity.d/env/99.sh": "export X=1\n"}, ".singularity.d/env/99.sh"),
        ({"root/.ssh/environment": "LD_PRELOAD=/x\n"}, "root/.ssh/environment"),
        ({"root/.ssh/rc": "mine\n"}, "root/.ssh/rc"),
        ({"root/.pam_environment": "LD_PRELOAD=/x\n"}, "root/.pam_environment"),
        ({"etc/profile.d/zz.sh": "-> /opt/mine.sh", "opt/mine.sh": "x"}, "etc/profile.d/zz.sh"),
        ({"etc/profile.d": "-> /opt/mine", "opt/mine/zz.sh": "x"}, "etc/profile.d"),
    ],
)
def test_what_launchers_and_logins_read_and_links_to_what_was_not_read(
    files: dict[str, str], path: str
) -> None:
    assert [each for each, _ in found(files)] == [f"/{path}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("root/.bashrc", '. "$HOME/.cargo/env"\n'),
        *((f"root/{name}", "") for name in (".zshrc", ".zshenv", ".config/fish/config.fish", ".inputrc")),
        ("etc/zsh/zshenv", ""),
        ("etc/inputrc", "x"),
        ("usr/local/bin/g++", ""),
        ("etc/passwd", "root:x:0:0::/root:/opt/mine/sh\n"),
    ],
)
def test_what_nobody_here_can_judge_is_named_and_is_no_difference(path: str, text: str) -> None:
    more = {"opt/mine/sh": "x"} if path == "etc/passwd" else {}
    whole = checked({path: text, **more})
    assert whole.differences == []
    told = "/opt/mine/sh (the shell of root)" if more else f"/{path} ("
    assert [each.startswith(told) for each in whole.not_checked] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "",
        OF_DEBIAN,
        f"{OF_DEBIAN}\nalias ll='ls -l'\nexport EDITOR=vim\nPS1='\\u@\\h:\\w$ '\nTZ=UTC\nset -o vi\n",
        'export PATH=$HOME/.local/bin:$PATH\nexport PATH="${PATH}:/opt/tool/bin"\n',
        "export PROMPT_COMMAND='history -a' && export HISTFILE=/commandhistory/.bash_history\n",
        "export PS1=\"\\[\\e[31m\\]\\u@\\h:\\w\\$ \"\nPS1='\\u$ '\n",
        "if [ -f ~/.bashrc ]; then\n    . ~/.bashrc\nfi\n. /etc/profile\nalias python=python3\n",
        'export NVM_DIR="$HOME/.nvm"\n[ -d "$HOME/go" ] && export PATH="$HOME/go/bin:$PATH"\n',
        "JAVA_HOME=/opt/java\nexport JAVA_HOME\nexport PATH=$JAVA_HOME/bin:$PATH\n",
        'if [ -d "$HOME/bin" ] ; then\n    PATH="$HOME/bin:$PATH"\nfi\n',
        'if [ -d "$HOME/bin" ] ; then PATH="$HOME/bin:$PATH"; fi\n',
        'export BUN_INSTALL="$HOME/.bun"\nexport PATH="$BUN_INSTALL/bin:$PATH"\nexport PATH=~/x:$PATH\n',
        "alias ls='ls --color=auto'\nalias grep='grep --color=auto -n'\nalias gs='git status'\n",
        'unset HISTFILE\nexport EDITOR\necho "Hello!"; # x\nmesg n 2> /dev/null || true\n',
        "umask 022\nexport LANG=de_DE.UTF-8\nshopt -s histappend # more\n",
    ],
)
def test_what_a_home_may_have(text: str) -> None:
    files = {
        f"{home}/{name}": text for home in ("root", "srv/app", "etc/skel") for name in (".bashrc", ".profile")
    }
    whole = checked({**files, "opt/tool/bin/python3": "x"})
    assert (whole.differences, whole.not_checked) == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        '. "$HOME/.cargo/env"\n. "$HOME/.local/bin/env"\n',
        'export NVM_DIR="$HOME/.nvm"\n[ -s "$NVM_DIR/nvm.sh" ] && \\. "$NVM_DIR/nvm.sh"  # This loads nvm\n',
        'eval "$(starship init bash)"\neval "$(zoxide init --cmd cd bash)"\neval "$(direnv hook bash)"\n',
        "[ -f ~/.fzf.bash ] && source ~/.fzf.bash\n",
        '[[ -s "$HOME/.sdkman/bin/sdkman-init.sh" ]] && source "$HOME/.sdkman/bin/sdkman-init.sh"\n',
        "if [ -f '/opt/google-cloud-sdk/path.bash.inc' ]; then . '/opt/google-cloud-sdk/path.bash.inc'; fi\n",
        ". /usr/share/bash-completion/bash_completion\n",
        "cd /app\n",
        'eval "$(dircolors -b)"\n',
    ],
)
def test_the_lines_that_installers_of_tools_write_are_named_and_no_difference(text: str) -> None:
    whole = checked({"root/.bashrc": OF_DEBIAN + text, "srv/app/.profile": text})
    assert whole.differences == []
    named = [each.partition(" ")[0] for each in whole.not_checked]
    assert named == ["/" + path for path in ("root/.bashrc", "srv/app/.profile")]
    assert found({"etc/environment": text})


def test_files_of_debian_s_packages() -> None:
    texts = {"etc/environment": "", "etc/bash_completion.d/git-prompt": "x", "etc/environment.d/x": "mine"}
    assert checked(texts).not_checked == []
    assert found({**texts, "etc/environment": 'HTTP_PROXY="http://proxy.example.com:3128"\nTZ=UTC\n'}) == []


def test_two_variables_of_one_name_are_named() -> None:
    env = image().config["Env"]
    assert found({}, Env=["OMP_NUM_THREADS=7", *env])


@pytest.mark.skipif(len(REAL) < 2, reason="this machine's /etc/skel is not Debian 12's")
def test_the_real_files_of_a_new_user() -> None:
    files = {f"srv/app/{name}": text for name, text in REAL.items()}
    whole = checked(files)
    assert (whole.differences, whole.not_checked) == ([], [])
    assert found({**files, "srv/app/.bashrc": REAL[".bashrc"] + "LD_PRELOAD=/x\n"}) == [
        ("/srv/app/.bashrc", "runs at start")
    ]


def test_a_line_is_shown_without_what_a_terminal_would_obey() -> None:
    [told] = checked({"root/.bashrc": "mine \x1b[2K\n"}).differences
    assert told.second == "mine ?[2K"
