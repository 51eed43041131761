"""How good the network of a finished or running run is, from its directory alone."""

from difflib import get_close_matches
from pathlib import Path

from ebnet.errors import ConfigError
from ebnet.recipe.phases import PhaseName
from ebnet.runs.directory import RunDirectory, load_phase
from ebnet.train.distributed import pick_device
from ebnet.train.evaluation import Evaluation, evaluate
from ebnet.train.pictures import Pictures


def evaluate_run(
    run: str | Path,
    phase: str | None = None,
    data: str | Path | None = None,
    best: bool = False,
    device: str = "auto",
) -> tuple[PhaseName, Evaluation]:
    """The phase's name and how good its network is on the validation pictures.

    Args:
        phase: by default the last one that has a checkpoint.
        data: where the data set lies now, if it has moved since the training.
        best: the best epoch's network instead of the last's.
    """
    directory = RunDirectory(run)
    recipe = directory.recipe()
    name = _phase(directory, phase)
    if data is not None:
        recipe = recipe.changed({"data.root": str(data)})
    network, pictures, place = load_phase(run, name, best), Pictures.open(recipe.data), pick_device(device)
    return name, evaluate(network.to(place), pictures.validation(), pictures.normalise, place)


def _phase(directory: RunDirectory, wanted: str | None) -> PhaseName:
    have = directory.trained()
    if wanted is None and have:
        return have[-1]
    for name in have:
        if name == wanted:
            return name
    near = get_close_matches(wanted or "", have, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(have) or 'no checkpoint yet'}"
    raise ConfigError(f"{directory.path} has no phase {wanted or 'to evaluate'}; {hint}")
