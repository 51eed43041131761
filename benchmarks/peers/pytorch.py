"""PyTorch: eager, and compiled."""

import numpy as np
import torch
from torch import nn
from torch._inductor import config as inductor

from peers.case import Case, Run


def eager(case: Case) -> Run:
    return _run(case.model)


def compiled(case: Case) -> Run:
    """Inductor with the weights as constants (TORCHINDUCTOR_FREEZING=1), without which it gains nothing here."""
    inductor.freezing = True
    inductor.compile_threads = 1  # no helpers that stay
    return _run(torch.compile(case.model, dynamic=False))


def _run(model: nn.Module) -> Run:
    def call(images: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(torch.from_numpy(images)).numpy()

    return Run(call)
