"""``python -m desktop.worker DESCRIPTOR``; see :mod:`desktop.worker.main`."""

import os
import sys

from desktop.worker.main import main

if __name__ == "__main__":  # Not in the children that an engine spawns: they import this again.
    status = main(sys.argv[1:])
    # Nothing is left to be done. Python's own end would take apart all that an engine imported:
    # with torch that takes ten seconds and more, and a restart waits for it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
