"""A worker process for the tests: the real worker, with evaluations that take a while and are written down."""

import sys
import time
from pathlib import Path

from ebnet.search.candidate import Candidate
from ebnet.search.directory import open_study
from ebnet.search.evaluate import Report
from ebnet.search.worker import Worker
from tests.search.studies import formula

HEARTBEAT, GRACE = 1, 3


def main(directory: str, url: str, log: str, seconds: str) -> None:
    study = open_study(Path(directory), url or None, heartbeat=HEARTBEAT, grace=GRACE)

    def slowly(candidate: Candidate, report: Report) -> float:
        with Path(log).open("a") as file:
            file.write(f"{candidate.key}\n")
        time.sleep(float(seconds))
        return formula(candidate, report)

    Worker(study, slowly, poll=0.1, heartbeat=HEARTBEAT).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
