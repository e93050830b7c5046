"""``python -m calibrant.cli``."""

from . import main

main()
