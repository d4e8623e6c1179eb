"""``python -m desktop.worker DESCRIPTOR``; see :mod:`desktop.worker.main`."""

import sys

from desktop.worker.main import main

if __name__ == "__main__":  # Not in the children that an engine spawns: they import this again.
    sys.exit(main(sys.argv[1:]))
