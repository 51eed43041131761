"""The engine itself, from a packed file with fp16 reals."""

import tempfile
from pathlib import Path

import ebnet
from peers.case import Case, Run


def packed(case: Case) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        path = ebnet.pack(case.model, Path(folder) / "net.ebn", reals="fp16")
        return Run(ebnet.load(path, threads=case.threads))
