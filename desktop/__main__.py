"""``python -m desktop`` and the ``verso`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ARGV (without the program's name); the exit status."""
    from desktop.cli.main import main as run

    return run(list(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
