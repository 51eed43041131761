"""A worker of a comparison: `python -m ebnet.compare.worker CONTEST` is what `ebnet compare` starts for each core."""

import sys

from ebnet.compare.contest import Contest
from ebnet.errors import Interrupted
from ebnet.reproduce.worker import work

if __name__ == "__main__":
    try:
        work(Contest.from_json(sys.argv[1]))
    except Interrupted as interruption:
        sys.exit(128 + interruption.signal)
