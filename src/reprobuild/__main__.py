"""``python -m reprobuild`` is the command ``reprobuild``."""

from .cli import main

main()
