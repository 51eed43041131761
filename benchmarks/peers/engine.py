"""The engine itself, from a packed file with fp16 reals or with int8 layers."""

import tempfile
from pathlib import Path
from typing import Literal

import ebnet
from ebnet.data.dataset import IMAGENET_STATISTICS
from peers.case import Case, Run


def packed(case: Case, reals: Literal["fp16", "int8"] = "fp16") -> Run:
    statistics = {"mean": list(IMAGENET_STATISTICS.mean), "std": list(IMAGENET_STATISTICS.std)}
    with tempfile.TemporaryDirectory() as folder:
        path = ebnet.pack(case.model, Path(folder) / "net.ebn", reals, statistics, calibrate=case.calibration.numpy())
        return Run(ebnet.load(path, threads=case.threads))


def int8(case: Case) -> Run:
    return packed(case, "int8")
