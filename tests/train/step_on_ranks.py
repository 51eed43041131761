"""Run by the distributed test, alone or under torchrun: one training step, its gradients and statistics to a file."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from ebnet.data import Loader, Normalise, PadCrop
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.settings import Recipe
from ebnet.runs.state import Meter
from ebnet.train.distributed import process_group, rank, world_size
from ebnet.train.gate_start import start_gates_from_clusters
from ebnet.train.loop import Trainer
from ebnet.train.metrics import averages
from ebnet.train.outside_teacher import TEACHERS, outside_logits
from ebnet.train.phases import PHASES
from ebnet.train.pictures import Pictures
from tests.train.test_outside_teacher import photos
from tests.train.tiny import pictures, tiny


def main(out: str) -> None:
    recipe = tiny(routing__coupling=0.5, routing__gate_rate=0.1)
    device, stage = torch.device("cpu"), PHASES["stage1-experts"]
    torch.set_num_threads(1)
    with process_group(device):
        torch.manual_seed(0)
        teacher = ExpertBinaryNetwork(PHASES["teacher"].config(recipe, 10, 3), PHASES["teacher"].precision)
        network = ExpertBinaryNetwork(stage.config(recipe, 10, 3), stage.precision)
        trainer = Trainer(network, teacher, stage, recipe, 1, Normalise((0.5,) * 3, (0.2,) * 3), device)
        loader = Loader(pictures()[0], PadCrop(8), 48, shuffle=True, rank=rank(), world_size=world_size())
        images, labels = next(iter(loader.epoch(0)))
        meter = Meter()
        meter.add(len(labels), **trainer.step(images, labels, 3))
        tensors = {f"gradient {name}": p.grad for name, p in network.named_parameters() if p.grad is not None}
        tensors |= {f"buffer {name}": value.float() for name, value in network.named_buffers()}
        tensors["terms"] = torch.tensor([mean for _, mean in sorted(averages(meter).items())])
        tensors |= {f"gate {name}": value for name, value in _gates_from_clusters(recipe).items()}
        tensors["opinions"] = _opinions(f"{out}-teacher").float()
        if rank() == 0:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, out)


def _opinions(file: str) -> torch.Tensor:
    """Of a stand-in for the teacher from outside, on a number of images that two processes cannot share evenly."""
    torch.manual_seed(2)
    stand_in = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1000))
    TEACHERS["efficientnet-lite0"] = replace(TEACHERS["efficientnet-lite0"], load=lambda: stand_in)
    return outside_logits("efficientnet-lite0", 32, photos(33), Path(file), torch.device("cpu"))


def _gates_from_clusters(recipe: Recipe) -> dict[str, torch.Tensor]:
    """Of a replicated network, each process holding a part of the images."""
    stage = PHASES["stage1-one-expert"]
    torch.manual_seed(1)
    network = ExpertBinaryNetwork(stage.config(recipe, 10, 3), stage.precision).replicate(3)
    opened = Pictures.open(recipe.data, pictures())
    images, _ = opened.sample(opened.train, 40, divided=True)
    pixels = opened.normalise.tensor(images)
    assert len(pixels) == 40 // world_size()
    start_gates_from_clusters(network, pixels, recipe.seed)
    return {name: value for name, value in network.state_dict().items() if ".gate." in name}


if __name__ == "__main__":
    main(sys.argv[1])
