"""The staged search against random search with as many trainings, on tables of networks that were all trained."""

import importlib.util
import sys
from pathlib import Path

import pytest

from ebnet.search.table import read_table, shipped_table

SEEDS = 20


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "search.py"
    spec = importlib.util.spec_from_file_location("search_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["search_benchmark"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("random_base", [False, True])
@pytest.mark.parametrize("name", [pytest.param("mnist5k", marks=pytest.mark.slow), "mnist5k-one-epoch"])
def test_the_staged_search_is_at_least_as_good_as_random_search(benchmark, name, random_base):
    table = read_table(shipped_table(name))
    assert len(table.accuracies) == 72
    found = [benchmark.compare(table, share, SEEDS, random_base=random_base) for share in benchmark.SHARES]
    assert all(one.trainings < 0.8 * one.networks for one in found)
    # The mean over budgets of the mean over seeds; two of its standard errors are what luck with the seeds may cost.
    gain = sum(one.gain for one in found) / len(found)
    error = sum(one.standard_error**2 for one in found) ** 0.5 / len(found)
    assert gain > -2 * error
