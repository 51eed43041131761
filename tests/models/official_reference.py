"""The released network's forward pass written from its state dict's layout alone, for checking the importer."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

State = dict[str, Tensor]


def random_state(blocks: list[int], width: float, groups: list[int], experts: int, classes: int, seed: int) -> State:
    """A state dict with the released names and shapes."""
    g = torch.Generator().manual_seed(seed)
    state: State = {}

    def put(name: str, *shape: int) -> None:
        fan_in = math.prod(shape[1:]) or 1
        state[name] = torch.randn(*shape, generator=g) / math.sqrt(fan_in)

    def norm(name: str, channels: int) -> None:
        state[f"{name}.weight"] = torch.rand(channels, generator=g) + 0.5
        state[f"{name}.bias"] = torch.randn(channels, generator=g) * 0.3
        state[f"{name}.running_mean"] = torch.randn(channels, generator=g) * 0.3
        state[f"{name}.running_var"] = torch.rand(channels, generator=g) + 0.5
        state[f"{name}.num_batches_tracked"] = torch.tensor(1)

    for name, shape in {
        "conv1": (32, 3, 3, 3),
        "conv2_1": (16, 32, 1, 1),
        "conv2_2": (32, 16, 3, 3),
        "conv3": (64, 64, 1, 1),
    }.items():
        put(f"{name}.0.weight", *shape)
        norm(f"{name}.1", shape[0])
    cin = 64
    for s in range(4):
        cout = int(64 * width * 2**s)
        for b in range(blocks[s]):
            at = f"layer{s + 1}.{b}"
            for k in (1, 2, 3) if groups[s] > 1 else (1, 2):
                inputs = cin if k == 1 else cout
                split, size = (1, 1) if k == 3 else (groups[s], 3)
                put(f"{at}.conv{k}.weight", experts, cout, inputs // split, size, size)
                state[f"{at}.conv{k}.alpha2"] = torch.rand(1, cout, 1, 1, generator=g) * 0.2
                put(f"{at}.conv{k}.fc.weight", experts, inputs)
                put(f"{at}.conv{k}.fc.bias", experts)
                put(f"{at}.conv{k}.se_fc.0.weight", cout // 8, inputs)
                put(f"{at}.conv{k}.se_fc.2.weight", cout, cout // 8)
                norm(f"{at}.bn{k}", inputs)
                state[f"{at}.activation{k}.weight"] = torch.rand(cout, generator=g)
            if b == 0:
                for index, shape in {1: (experts, cin // 4, cin, 1, 1), 4: (experts, cout, cin // 4, 1, 1)}.items():
                    put(f"{at}.downsample.{index}.weight", *shape)
                    state[f"{at}.downsample.{index}.alpha2"] = torch.rand(1, shape[1], 1, 1, generator=g) + 0.5
                    put(f"{at}.downsample.{index}.fc.weight", experts, shape[2])
                    put(f"{at}.downsample.{index}.fc.bias", experts)
                    norm(f"{at}.downsample.{index + 1}", shape[1])
                    state[f"{at}.downsample.{index + 2}.weight"] = torch.rand(shape[1], generator=g)
            cin = cout
    put("fc.weight", classes, cin)
    put("fc.bias", classes)
    return state


def forward(state: State, images: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and chosen experts [layers, batch]."""
    chosen: list[Tensor] = []

    def norm(name: str, x: Tensor, eps: float) -> Tensor:
        p = {k: state[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias")}
        return F.batch_norm(x, p["running_mean"], p["running_var"], p["weight"], p["bias"], False, 0.0, eps)

    def stem(name: str, x: Tensor, stride: int) -> Tensor:
        weight = state[f"{name}.0.weight"]
        return F.relu(norm(f"{name}.1", F.conv2d(x, weight, None, stride, weight.shape[-1] // 2), 1e-5))

    def binary(at: str, k: int, x: Tensor, stride: int) -> Tensor:
        x = norm(f"{at}.bn{k}", x, 1e-4)
        conv = f"{at}.conv{k}"
        mean = x.mean((2, 3))
        experts = F.linear(mean, state[f"{conv}.fc.weight"], state[f"{conv}.fc.bias"]).softmax(1).argmax(1)
        chosen.append(experts)
        weights = torch.where(state[f"{conv}.weight"] >= 0, 1.0, -1.0)
        signs = torch.where(x >= 0, 1.0, -1.0)
        groups = x.shape[1] // weights.shape[2]
        pad = weights.shape[-1] // 2
        y = torch.cat(
            [F.conv2d(signs[i : i + 1], weights[e], None, stride, pad, 1, groups) for i, e in enumerate(experts)]
        )
        se = F.relu(F.linear(mean, state[f"{conv}.se_fc.0.weight"]))
        se = torch.sigmoid(F.linear(se, state[f"{conv}.se_fc.2.weight"]))
        return F.prelu(y * state[f"{conv}.alpha2"] * se[:, :, None, None], state[f"{at}.activation{k}.weight"])

    def projection(at: str, x: Tensor, stride: int) -> Tensor:
        x = F.avg_pool2d(x, stride, stride, ceil_mode=True, count_include_pad=False) if stride > 1 else x
        for index in (1, 4):
            name = f"{at}.downsample.{index}"
            x = F.conv2d(x, state[f"{name}.weight"][0]) * state[f"{name}.alpha2"]
            x = F.prelu(norm(f"{at}.downsample.{index + 1}", x, 1e-5), state[f"{at}.downsample.{index + 2}.weight"])
        return x

    x = stem("conv1", images, 2)
    pooled = F.max_pool2d(x, 3, 2, 1)
    x = stem("conv3", torch.cat((stem("conv2_2", stem("conv2_1", x, 1), 2), pooled), 1), 1)
    for s in range(4):
        b = 0
        while f"layer{s + 1}.{b}.bn1.weight" in state:
            at = f"layer{s + 1}.{b}"
            stride = 2 if s > 0 and b == 0 else 1
            x = binary(at, 1, x, stride) + (projection(at, x, stride) if b == 0 else x)
            x = binary(at, 2, x, 1) + x
            if f"{at}.conv3.weight" in state:
                x = binary(at, 3, x, 1) + x
            b += 1
    return F.linear(x.mean((2, 3)), state["fc.weight"], state["fc.bias"]), torch.stack(chosen)
