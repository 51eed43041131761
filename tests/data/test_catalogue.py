import subprocess
import sys

import pytest

from ebnet.data import open_dataset
from ebnet.data.catalogue import CATALOGUE
from ebnet.errors import DataError


def test_unknown_names_and_splits_are_answered_with_known_ones() -> None:
    with pytest.raises(DataError, match=r"no data set is called 'cifar-100'; did you mean 'cifar100'\?"):
        open_dataset("cifar-100")
    with pytest.raises(DataError, match="the data sets are: generated, mnist5k"):
        open_dataset("?")
    with pytest.raises(DataError, match="split='test' is not known; it is one of: train, val"):
        open_dataset("generated", split="test")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["folder", "webdataset"])
def test_sets_that_lie_anywhere_ask_where(name: str) -> None:
    with pytest.raises(DataError, match=f"{name} is not on this machine; say where it is"):
        open_dataset(name)


def test_every_entry_is_findable_or_says_how_to_get_it() -> None:
    for entry in CATALOGUE.values():
        assert entry.find() is not None or entry.advice


def test_importing_and_reading_need_no_torch() -> None:
    code = "import sys, ebnet.data as d; d.open_dataset('mnist5k').image(0); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
