"""The demo: everything the project does, in minutes, on real digits that need no download."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ebnet.cost.profile import profile
from ebnet.data.transforms import as_picture
from ebnet.demo.compare import compare
from ebnet.files import write_atomically
from ebnet.models.pretrained import load_pretrained
from ebnet.packing.file import pack
from ebnet.packing.source import open_packable
from ebnet.packing.verify import verify
from ebnet.recipe.phases import PhaseName
from ebnet.recipe.settings import Data, load_recipe
from ebnet.report.costs import float_bytes
from ebnet.report.run import run_report
from ebnet.runs.results import PhaseResult
from ebnet.runtime.engine import load
from ebnet.train.pictures import Pictures
from ebnet.train.pipeline import train
from ebnet.train.progress import Reporter

RECIPE = "demo"
VERIFIED = 256
"""Test images on which engine and torch are compared."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, and where it lies."""

    out: Path
    phases: dict[PhaseName, PhaseResult]
    experts: int
    float_bytes: int
    """The plain network of the same structure, one expert, every weight a 32-bit float."""
    packed_bytes: int
    verification: dict[str, Any]
    bench: dict[str, Any]

    @property
    def usage(self) -> dict[str, list[float]]:
        return self.phases["stage2"].usage

    def to_dict(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "stages": {name: phase.to_dict() for name, phase in self.phases.items()},
            "float_bytes": self.float_bytes,
            "packed_bytes": self.packed_bytes,
            "verification": self.verification,
            "bench": self.bench,
        }


def demo(out: Path, overrides: list[str], reporter: Reporter) -> DemoResult:
    """Train, pack, verify, measure, report; what an earlier call has finished is not done again."""
    recipe, run, packed = load_recipe(RECIPE, overrides), out / "run", out / "net.ebn"
    reporter.say(f"1/5 train all stages of the recipe `{RECIPE}` in {run}")
    result = train(recipe, run, reporter=reporter)
    assert result.final is not None  # the recipe ends with Stage II
    final = load_pretrained(result.final)
    trained = (result.final / "model.safetensors").stat().st_mtime_ns

    def step(path: Path, title: str, work: Callable[[], None]) -> None:
        if path.exists() and path.stat().st_mtime_ns > trained:
            reporter.say(f"{title}: done before")
        else:
            reporter.say(title)
            work()

    def write_packed() -> None:
        source = open_packable(run)
        pack(source.model, packed, "fp32", source.preprocessing, source.labels)

    def write_verification() -> None:
        found = verify(load(packed), final, _test_pictures(Pictures.open(recipe.data), VERIFIED))
        _write(out / "verify.json", found.to_dict())

    _write_digit(recipe.data, out / "digit.png")
    step(packed, f"2/5 pack it into {packed}", write_packed)
    step(out / "verify.json", "3/5 verify the engine against torch", write_verification)
    step(out / "bench.json", "4/5 measure both", lambda: _write(out / "bench.json", compare(str(packed), final)))
    reporter.say(f"5/5 write {out / 'report.html'}")
    run_report(run, out / "bench.json").write(out / "report.html")
    return DemoResult(
        out,
        result.phases,
        final.config.experts,
        float_bytes(profile(final.config, recipe.data.size)),
        packed.stat().st_size,
        json.loads((out / "verify.json").read_text()),
        json.loads((out / "bench.json").read_text()),
    )


def _test_pictures(pictures: Pictures, count: int) -> np.ndarray:
    """Normalised NCHW pictures, spread over the validation set."""
    batches = [pictures.normalise.tensor(images).numpy() for images, _ in pictures.validation().epoch(0)]
    everything = np.concatenate(batches)
    return np.ascontiguousarray(everything[:: max(1, len(everything) // count)][:count])


def _write_digit(data: Data, path: Path) -> None:
    """An image to try the network with, one that it has not learnt from."""
    picture = io.BytesIO()
    as_picture(Pictures.open(data).val.image(0)).save(picture, "PNG")
    write_atomically(path, picture.getvalue())


def _write(path: Path, values: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(values, indent=1) + "\n").encode())
