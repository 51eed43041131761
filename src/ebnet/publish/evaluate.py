"""How good a packed file is, in the engine that runs it."""

from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from ebnet.recipe.settings import Data
from ebnet.runs.state import Meter
from ebnet.runtime.engine import load
from ebnet.train.evaluation import Evaluation
from ebnet.train.metrics import averages, top_k
from ebnet.train.pictures import Pictures


def evaluate_packed(file: str | Path, data: Data) -> Evaluation:
    """How good a packed file is in the engine, on the validation pictures of a data set."""
    engine, pictures = load(file), Pictures.open(data)
    layers = [op["name"] for op in engine.program if op["op"] == "binary"]
    meter, chosen = Meter(sums={"top1": 0.0, "top5": 0.0, "loss": 0.0}), []
    for images, labels in pictures.validation().epoch(0):
        logits = torch.from_numpy(engine(images.numpy()))
        top1, top5 = top_k(logits, labels)
        meter.add(len(labels), top1=top1, top5=top5, loss=functional.cross_entropy(logits, labels).item())
        chosen.append(engine.experts(images.numpy()))
    experts = np.concatenate(chosen, axis=1)
    count = int(engine.network["experts"])
    shares = {name: np.bincount(row, minlength=count) / len(row) for name, row in zip(layers, experts, strict=True)}
    usage = {name: share.tolist() for name, share in shares.items() if count > 1}
    return Evaluation(**averages(meter, torch.device("cpu")), usage=usage)
