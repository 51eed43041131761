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
    meter, chosen = Meter(sums={"top1": 0.0, "top5": 0.0, "loss": 0.0}), []
    for images, labels in pictures.validation().epoch(0):
        values, experts = engine.run(images.numpy())
        logits = torch.from_numpy(values)
        top1, top5 = top_k(logits, labels)
        meter.add(len(labels), top1=top1, top5=top5, loss=functional.cross_entropy(logits, labels).item())
        chosen.append(experts)
    rows = zip(engine.layers, engine.expert_counts, np.concatenate(chosen, axis=1), strict=True)
    usage = {name: (np.bincount(row, minlength=of) / len(row)).tolist() for name, of, row in rows if of > 1}
    return Evaluation(**averages(meter, torch.device("cpu")), usage=usage)
