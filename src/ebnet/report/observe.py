"""What a network does with test images: the experts it picks, for which classes, and its features in the plane."""

import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.names import spoken
from ebnet.report.figure import Choice, Colouring, HeatMap, Scatter
from ebnet.report.page import Thumbnails
from ebnet.train.pictures import Pictures

OBSERVED = 1000
"""Images that are classified."""

EMBEDDED = 600
"""Images of the t-SNE, which grows with the square of their number."""

THUMBNAIL = 28
CLASSES_SHOWN = 20


@dataclass(frozen=True)
class Observation:
    """A network's answers, image by image."""

    pictures: np.ndarray
    """uint8 [count, height, width, channels]."""
    labels: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray
    """[count, 2]: of the class that it is, and of the class it was taken for."""
    features: np.ndarray
    experts: np.ndarray
    """[layers, count]; no layers where there is nothing to choose."""
    layers: list[str]
    classes: list[str]

    @property
    def accuracy(self) -> float:
        return float((self.labels == self.predicted).mean())


@torch.no_grad()
def observe(network: ExpertBinaryNetwork, pictures: Pictures, count: int = OBSERVED) -> Observation:
    """Classify images that are spread evenly over the validation set."""
    network.eval()
    layers = {name: layer for name, layer in network.binary_layers().items() if _chooses(network)}
    places = spread_evenly(len(pictures.val), count)
    kept: list[tuple[np.ndarray, ...]] = []
    position = 0
    for images, labels in pictures.validation().epoch(0):
        chosen = [i for i in range(len(labels)) if position + i in places]
        position += len(labels)
        if chosen:
            features = network.embed(pictures.normalise.tensor(images[chosen]))
            picked = [_last_experts(layer) for layer in layers.values()]
            shares = network.classify(features).softmax(1)
            best = shares.argmax(1)
            kept.append(
                (
                    images[chosen].numpy(),
                    labels[chosen].numpy(),
                    best.numpy(),
                    shares.gather(1, torch.stack((labels[chosen], best), 1)).numpy(),
                    features.numpy(),
                    np.stack(picked, 1) if picked else np.zeros((len(chosen), 0), np.int64),
                )
            )
    shown, truth, predicted, sure, embedded, experts = (np.concatenate(column) for column in zip(*kept, strict=True))
    return Observation(shown, truth, predicted, sure, embedded, experts.T, list(layers), list(pictures.val.classes))


def spread_evenly(total: int, count: int) -> set[int]:
    """`count` places of `total`, or all; the first ones alone would be of a few classes, where a set is sorted."""
    return {number * total // count for number in range(count)} if count < total else set(range(total))


def _last_experts(layer: Any) -> np.ndarray:
    return layer.last_experts.numpy()


def _chooses(network: ExpertBinaryNetwork) -> bool:
    return network.config.conv == "expert" and network.config.experts > 1


def classes_of_experts(seen: Observation, experts: int) -> list[Choice]:
    """For every layer, where the images of each class go."""
    if not seen.layers:
        return []
    present = [c for c in range(len(seen.classes)) if (seen.labels == c).any()]
    options = []
    for layer, chosen in zip(seen.layers, seen.experts, strict=True):
        shares = {
            c: np.bincount(chosen[seen.labels == c], minlength=experts) / (seen.labels == c).sum() for c in present
        }
        shown = sorted(sorted(present, key=lambda c: -shares[c].max())[:CLASSES_SHOWN])
        options.append(
            HeatMap(
                f"classes-of-experts-{layer.replace('.', '-')}",
                spoken(layer),
                "",
                [str(e) for e in range(experts)],
                [seen.classes[c] for c in shown],
                [[float(shares[c][e]) for c in shown] for e in range(experts)],
                "expert",
                "class",
            )
        )
    note = (
        "Percent of each class's images that go to each expert; columns sum to 100. A full cell is a class that an "
        "expert serves nearly alone. The gates were never told the classes."
    )
    if len(present) > CLASSES_SHOWN:
        note += f" Of {len(present)} classes, the {CLASSES_SHOWN} that go most to a single expert are shown."
    return [Choice("classes-of-experts", "Which classes each expert serves", note, "layer", options)]


def embedding(seen: Observation, experts: int) -> tuple[list[Scatter], Thumbnails | None]:
    """The features before the classifier by t-SNE (the paper's figure 1b), with the images to hover over."""
    from sklearn.manifold import TSNE

    count = len(seen.labels)
    if count < 10:
        return [], None
    chosen = np.linspace(0, count - 1, min(EMBEDDED, count)).round().astype(int)
    places = TSNE(perplexity=min(30, len(chosen) / 4), init="pca", random_state=0).fit_transform(seen.features[chosen])
    colourings = [
        Colouring(f"the expert of {spoken(layer)}", row[chosen].tolist(), [f"expert {e}" for e in range(experts)])
        for layer, row in reversed(list(zip(seen.layers, seen.experts, strict=True)))
    ]
    if len(seen.classes) <= CLASSES_SHOWN:
        colourings.append(Colouring("class", seen.labels[chosen].tolist(), seen.classes))
    right = (seen.labels == seen.predicted)[chosen]
    colourings.append(Colouring("prediction", (~right).astype(int).tolist(), ["right", "wrong"]))
    tips = [_tip(seen, i) for i in chosen]
    scatter = Scatter(
        "features",
        "Features before the classifier (t-SNE)",
        f"{len(chosen)} test images; near each other means alike to the network. Coloured by the expert of the last "
        "layer, as in the paper's figure 1b: where colours form islands, experts have specialised. Hover to see the "
        "image.",
        places[:, 0].tolist(),
        places[:, 1].tolist(),
        tips,
        colourings,
        pictures=True,
    )
    return [scatter], _thumbnails(seen.pictures[chosen])


def _tip(seen: Observation, index: int) -> str:
    truth, guess = seen.classes[seen.labels[index]], seen.classes[seen.predicted[index]]
    verdict = f"{truth}, recognised" if truth == guess else f"{truth}, taken for {guess}"
    path = " ".join(str(e) for e in seen.experts[:, index])
    return f"{verdict}\nexperts {path}" if path else verdict


def png(pixels: np.ndarray, side: int) -> bytes:
    """One image, [height, width, channels], as a square of `side` pixels."""
    data = io.BytesIO()
    _image(pixels).resize((side, side)).save(data, "PNG", optimize=True)
    return data.getvalue()


def _image(pixels: np.ndarray) -> Any:
    from PIL import Image

    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels[:, :, :3])


def _thumbnails(pictures: np.ndarray) -> Thumbnails:
    from PIL import Image

    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    mode = "L" if pictures.shape[3] == 1 else "RGB"
    sheet = Image.new(mode, (columns * THUMBNAIL, rows * THUMBNAIL))
    for i, pixels in enumerate(pictures):
        small = _image(pixels).resize((THUMBNAIL, THUMBNAIL))
        sheet.paste(small, (i % columns * THUMBNAIL, i // columns * THUMBNAIL))
    data = io.BytesIO()
    sheet.save(data, "PNG", optimize=True)
    return Thumbnails(data.getvalue(), columns, rows)
