"""The command ``completion``."""

from __future__ import annotations

import click

from . import complete


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    reprobuild completion bash \\
        > ~/.local/share/bash-completion/completions/reprobuild
    """
    root = click.get_current_context().find_root()
    click.echo(complete.script(root.command, shell))
