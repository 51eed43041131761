"""The authors' released ImageNet model (1262-2-4:8:8:16, 4 experts, data-driven scaling) read into our network.

Their state dict, and what becomes of it here:

    conv1, conv2_1, conv2_2, conv3 (.0 conv, .1 BN)  the stem's conv1, squeeze, conv2, mix
    layerS.B.bnK / convK / activationK               unit K-1 of block B of stage S-1
      convK.weight [experts, out, in/g, k, k]        latent weights, experts stacked along the output channels
      convK.alpha2 [1, out, 1, 1]                    scale
      convK.fc                                       the gate's linear map (argmax of its softmax)
      convK.se_fc.0 / .2                             squeeze / excite of the data-driven scaling
    layerS.0.downsample 1 conv 2 BN 3 PReLU 4 conv 5 BN 6 PReLU   the projection
      its convs carry experts and a gate that are not used: expert 0, unbinarized, times alpha2
    fc                                               classifier
"""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ebnet.arch import STAGES, STEM_WIDTH, Arch
from ebnet.errors import ArchError, CheckpointError
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_state
from ebnet.nn.precision import Precision

State = dict[str, Tensor]

_DOWNSAMPLE = {"conv1": 1, "norm1": 2, "act1": 3, "conv2": 4, "norm2": 5, "act2": 6}
_NAMES: tuple[tuple[str, Any], ...] = (
    (r"stem\.conv1\.", "conv1."),
    (r"stem\.squeeze\.", "conv2_1."),
    (r"stem\.conv2\.", "conv2_2."),
    (r"stem\.mix\.", "conv3."),
    (r"^(conv[\d_]+)\.conv\.", r"\1.0."),
    (r"^(conv[\d_]+)\.norm\.", r"\1.1."),
    (r"^classifier\.", "fc."),
    (r"\.shortcut\.(conv1|norm1|act1|conv2|norm2|act2)\.", lambda m: f".downsample.{_DOWNSAMPLE[m[1]]}."),
    (r"\.units\.\d+\.downsample\.", ".downsample."),
    (r"\.units\.(\d)\.norm\.", lambda m: f".bn{int(m[1]) + 1}."),
    (r"\.units\.(\d)\.act\.", lambda m: f".activation{int(m[1]) + 1}."),
    (r"\.units\.(\d)\.conv\.", lambda m: f".conv{int(m[1]) + 1}."),
    (r"^stages\.(\d)\.", lambda m: f"layer{int(m[1]) + 1}."),
    (r"\.scale$", ".alpha2"),
    (r"\.gate\.linear\.", ".fc."),
    (r"\.scaling\.squeeze\.", ".se_fc.0."),
    (r"\.scaling\.excite\.", ".se_fc.2."),
)
_UNUSED = re.compile(r"layer\d\.0\.downsample\.[14]\.(fc\.weight|fc\.bias|alpha2)")


def read_official(path: str | Path) -> State:
    """The state dict of a released checkpoint file (torch's own format, read without running code, or safetensors)."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist or is not a file")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            content: Any = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(f"{path} is not a readable checkpoint of tensors: {error}") from error
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise CheckpointError(f"{path} does not hold a state dict (names and tensors)")
    for prefix in ("module.", "state."):
        if content and all(name.startswith(prefix) or "." not in name for name in content):
            content = {n.removeprefix(prefix): t for n, t in content.items() if n.startswith(prefix)}
    return content


def import_official(state: State) -> ExpertBinaryNetwork:
    """The network of a released state dict, in eval mode with binary weights. Everything wrong comes as one list."""
    model = ExpertBinaryNetwork(_config(state), Precision.BINARY)
    names = {ours: _official_name(ours) for ours in model.state_dict()}
    faults = [f"missing {name}" for name in names.values() if name not in state]
    known = set(names.values())
    faults += [f"unknown {name}" for name in state if name not in known and not _UNUSED.fullmatch(name)]
    faults += [
        f"{name} holds NaN or infinity" for name in known & state.keys() if not torch.isfinite(state[name]).all()
    ]
    if faults:
        raise CheckpointError("this is not the authors' released network:\n  " + "\n  ".join(faults))
    load_state(model, {ours: _value(state, name) for ours, name in names.items()}, "the released state dict")
    return model.eval()


def _official_name(ours: str) -> str:
    for pattern, replacement in _NAMES:
        ours = re.sub(pattern, replacement, ours)
    return ours


def _value(state: State, name: str) -> Tensor:
    value = state[name]
    if name.endswith(".alpha2"):
        return value.flatten()
    if re.search(r"\.downsample\.[14]\.weight$", name):
        # A real convolution with its scale folded in; its other experts are never used.
        return value[0] * state.get(name.replace(".weight", ".alpha2"), value.new_ones(1)).view(-1, 1, 1, 1)
    return value.flatten(0, 1) if value.dim() == 5 else value


def _config(state: State) -> NetworkConfig:
    """The network's structure, read off the shapes."""
    try:
        blocks = [len({n.split(".")[1] for n in state if n.startswith(f"layer{s + 1}.")}) for s in range(STAGES)]
        first = [state[f"layer{s + 1}.0.conv1.weight"] for s in range(STAGES)]
        inputs = [len(state[f"layer{s + 1}.0.bn1.weight"]) for s in range(STAGES)]
        narrow = state["layer4.0.downsample.1.weight"]
        classes, in_channels = len(state["fc.weight"]), state["conv1.0.weight"].shape[1]
        arch = Arch(
            tuple(blocks),
            tuple(Fraction(w.shape[1], STEM_WIDTH * 2**s) for s, w in enumerate(first)),
            tuple(cin // w.shape[2] for cin, w in zip(inputs, first, strict=True)),
        )
        return NetworkConfig(
            arch,
            experts=first[0].shape[0],
            num_classes=classes,
            in_channels=in_channels,
            shortcut_reduction=narrow.shape[2] // narrow.shape[1],
            aggregation=any(re.match(r"layer\d\.\d+\.conv3\.", name) for name in state),
            scaling=any(".se_fc." in name for name in state),
        )
    except KeyError as error:
        raise CheckpointError(f"this is not the authors' released network:\n  missing {error.args[0]}") from None
    except (ArchError, IndexError, ZeroDivisionError) as error:
        raise CheckpointError(f"this is not the authors' released network: {error}") from error
