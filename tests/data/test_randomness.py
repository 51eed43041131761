import numpy as np
import pytest

from ebnet.data.randomness import permutation, uniforms


def test_the_numbers_are_those_of_every_machine() -> None:
    """Fixed values: a change here would break the exact restart of every run that is under way."""
    assert uniforms(0, 0, [0], 2).tolist() == [[0.590459849013978, 0.4644105976219146]]
    assert permutation(7, 3, 6).tolist() == [1, 4, 5, 2, 0, 3]


def test_a_row_depends_on_its_index_alone() -> None:
    many = uniforms(1, 2, np.arange(100), 5)
    assert np.array_equal(many[[41, 7]], uniforms(1, 2, [41, 7], 5))


@pytest.mark.parametrize("other", [(2, 1, 5), (1, 2, 6), (1, 3, 5)])
def test_seed_epoch_and_index_all_matter_and_do_not_trade_places(other: tuple[int, int, int]) -> None:
    assert not np.any(uniforms(1, 2, [5], 8) == uniforms(other[0], other[1], [other[2]], 8))


def test_numbers_are_uniform_and_uncorrelated() -> None:
    u = uniforms(0, 0, np.arange(20_000), 4)
    assert u.min() >= 0
    assert u.max() < 1
    np.testing.assert_allclose(u.mean(0), 0.5, atol=0.01)
    np.testing.assert_allclose(np.histogram(u, 10, (0, 1))[0] / u.size, 0.1, atol=0.005)
    assert np.abs(np.corrcoef(u.T) - np.eye(4)).max() < 0.03
    assert abs(np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]) < 0.03


def test_a_permutation_holds_everything_once_and_changes_with_the_epoch() -> None:
    orders = [permutation(0, epoch, 50) for epoch in range(4)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    assert not np.array_equal(orders[0], permutation(0, 0, 50, stream=1))
