"""Who runs beside the engine: the runtimes that somebody who deploys a network uses today."""

from argparse import ArgumentTypeError
from dataclasses import dataclass
from math import inf

NETWORK, EXPERTS, SIDE = "1262-2-4:8:8:16", 4, 224

CLOSE, ROUNDED = 1e-3, 0.5
"""How far off logits may be: see `pictures.error`. Whoever only knew the pictures' mean logits would be 1 off."""


@dataclass(frozen=True)
class Peer:
    """`build` is the `module:function` that makes a `Run` of a `Case`."""

    name: str
    label: str
    package: str
    """Whose version is shown."""
    build: str
    network: str = "resnet18"
    tolerance: float = CLOSE


ENGINE = Peer("engine", f"{NETWORK}, {EXPERTS} experts, engine", "ebnet", "peers.engine:packed", NETWORK, inf)
"""Not compared here: `ebnet verify` is for that. fp16 reals flip bits of a network without training everywhere."""
INT8_ENGINE = Peer(
    "engine-int8", f"{NETWORK}, {EXPERTS} experts, engine int8", "ebnet", "peers.engine:int8", NETWORK, inf
)
PEERS = [
    Peer("torch", "ResNet-18, torch eager fp32", "torch", "peers.pytorch:eager"),
    Peer("torch-compiled", "ResNet-18, torch compiled fp32", "torch", "peers.pytorch:compiled"),
    Peer("onnxruntime", "ResNet-18, ONNX Runtime fp32", "onnxruntime", "peers.onnxruntime:fp32"),
    Peer(
        "onnxruntime-int8", "ResNet-18, ONNX Runtime int8", "onnxruntime", "peers.onnxruntime:int8", tolerance=ROUNDED
    ),
    Peer("openvino", "ResNet-18, OpenVINO fp32", "openvino", "peers.openvino:fp32"),
    Peer("openvino-int8", "ResNet-18, OpenVINO int8", "openvino", "peers.openvino:int8", tolerance=ROUNDED),
    Peer("litert-int8", "ResNet-18, LiteRT int8", "ai-edge-litert", "peers.litert:int8", tolerance=ROUNDED),
    Peer("openvino-binary", "Bi-Real-18, OpenVINO binary", "openvino", "peers.openvino:binary", "bireal18"),
    Peer("larq", "Bi-Real-18, Larq Compute Engine", "larq-compute-engine", "peers.larq:binary", "bireal18"),
]


def chosen(names: str) -> list[Peer]:
    """The peers of a list with commas, in our order; `all` of them, or `none`."""
    known = {peer.name: peer for peer in PEERS}
    wanted = {"all": set(known), "none": set()}.get(names, set(names.split(",")))
    if unknown := wanted - set(known):
        raise ArgumentTypeError(f"there is no peer {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [peer for peer in PEERS if peer.name in wanted]
