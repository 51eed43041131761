"""The phases of training, in the paper's order and words (Section 4.1, "Optimization policy"; A.6 for the teacher).

A recipe and a run directory know a phase by its name, which never changes; a page shows its title.
"""

from typing import Literal, get_args

PhaseName = Literal["teacher", "stage1-one-expert", "stage1-experts", "stage2"]
PHASE_NAMES: tuple[PhaseName, ...] = get_args(PhaseName)


def title(name: PhaseName, experts: int | None = None) -> str:
    """What a page calls a phase, with the number of experts where it is known."""
    many = f"{experts or 'N'} expert{'' if experts == 1 else 's'}"
    return {
        "teacher": "teacher",
        "stage1-one-expert": "Stage I, one expert",
        "stage1-experts": f"Stage I, {many}",
        "stage2": "Stage II",
    }[name]


def number(name: PhaseName) -> int:
    """Of the phase, from 0, whichever of them a recipe runs."""
    return PHASE_NAMES.index(name)


def phase_seed(seed: int, name: PhaseName) -> int:
    """The randomness of one phase of a run: another one for each phase of each run, the same after a restart."""
    return seed * len(PHASE_NAMES) + number(name)
