"""A worker of a comparison: `python -m ebnet.compare.worker CONTEST` is what `ebnet compare` starts for each core."""

import sys

from ebnet.compare.contest import Contest
from ebnet.reproduce.worker import run

if __name__ == "__main__":
    run(Contest.from_json(sys.argv[1]))
