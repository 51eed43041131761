"""The directory a reader of the documents works in: a checkout, photographs, and what earlier commands made."""

import gzip
import io
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ebnet.data.fetch import SOURCES, Source
from ebnet.models.registry import create_model
from ebnet.nn import Precision
from ebnet.packing.file import pack
from ebnet.runtime.bench import bench
from tests.docs.commands import ROOT
from tests.models.official_reference import random_state
from tests.small_data import idx, photo, write_photographs, write_shards
from tests.tiny_run import TinyRun, some_digits
from tests.web_site import Site

CHECKOUT = ("CMakeLists.txt", "benchmarks", "constraints.txt", "docs", "examples", "mkdocs.yml", "native", "web")
CHECKOUT += ("pyproject.toml", "src")
MAKE_THEIR_DEMO = ("README.md", "docs/index.md")
"""Their first command makes `demo`; the other documents begin after it."""
IN_COLOUR = ("docs/c-api.md", "docs/engine.md", "docs/engine-measured.md")
"""Their `net.ebn` is of a network for photographs, without training, since digits are grey."""
BUILT = ROOT / "build" / "documented"
"""A checkout of its own for the commands that compile, kept: the core compiles once."""


def make_place(place: Path, document: str, trained: TinyRun) -> Path:
    """A scratch directory for one document."""
    place.mkdir(parents=True)
    link_checkout(place)
    for name in ("photos", "imagenette2", "imagenette96"):
        write_photographs(place / name)
    write_shards(place / "shards")
    (place / "cat.jpg").write_bytes(photo(1))
    (place / "dog.jpg").write_bytes(photo(2))
    Image.open(place / "cat.jpg").save(place / "picture.ppm")
    (place / "images").mkdir()
    Image.fromarray(some_digits(10, "val").images[7, :, :, 0]).save(place / "images" / "digit.png")
    state = random_state([1, 1, 1, 1], 0.25, [1, 2, 2, 4], experts=4, classes=10, seed=3)
    torch.save({"state_dict": {f"module.{key}": value for key, value in state.items()}}, place / "ebconv_1262.pth")
    if document in IN_COLOUR:
        model = create_model("1111-0.25-1:1:1:1", experts=3, num_classes=10, precision=Precision.BINARY)
        model.save_pretrained(place / "runs" / "demo")
        rules = {"size": 32, "resize": 32, "crop": 32, "mean": [0.5] * 3, "std": [0.25] * 3, "in_channels": 3}
        pack(model, place / "net.ebn", preprocessing=rules)
    elif document not in MAKE_THEIR_DEMO:
        shutil.copytree(trained.run, place / "demo" / "run")
        for packed in ("demo/net.ebn", "net.ebn"):
            shutil.copy(trained.packed, place / packed)
        shutil.copy(place / "images" / "digit.png", place / "demo")
        timed = bench(trained.packed, (1,), (1,), None, 0.01)
        (place / "demo" / "bench.json").write_text(json.dumps(timed.to_dict()))
    return place


def link_checkout(place: Path) -> None:
    for name in CHECKOUT:
        if not (place / name).exists():
            (place / name).symlink_to(ROOT / name)


def publish(site: Site) -> dict[str, tuple[Source, ...]]:
    """What `ebnet data fetch` finds: CIFAR-100 of the right size, all black, and a little of Fashion-MNIST."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        names = "\n".join(f"class {number}" for number in range(100)).encode()
        members = {"train.bin": bytes(50_000 * 3074), "test.bin": bytes(10_000 * 3074), "fine_label_names.txt": names}
        for name, data in members.items():
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    clothes = []
    for source in SOURCES["fashion-mnist"]:
        shape = (200, 28, 28) if "images" in source.name else (200,)
        clothes.append(site.publish(source.name, gzip.compress(idx(np.zeros(shape, np.uint8)))))
    return {
        "cifar100": (site.publish(SOURCES["cifar100"][0].name, archive.getvalue()),),
        "fashion-mnist": tuple(clothes),
    }
