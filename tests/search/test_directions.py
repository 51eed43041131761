"""The staged strategy, computed from results alone."""

import pytest

from ebnet.errors import ConfigError
from ebnet.search.begin import check_possible
from ebnet.search.budget import Budget
from ebnet.search.candidate import Candidate
from ebnet.search.directions import Sweep, best, next_sweep
from ebnet.search.pareto import undominated
from tests.search.studies import formula, prices, settings

BUDGETS = (Budget("bops", 2e6),)
SIZE = {"per_direction": 2, "combinations": 3}


def search(seed: int = 0, budgets=BUDGETS, rounds: int = 2, accuracy=formula, **changes):
    strategy = settings(seed=seed, **(SIZE | changes)).strategy
    sweeps: list[Sweep] = []
    accuracies: dict[str, float] = {}
    costs = prices()
    while (sweep := next_sweep(strategy, [budgets] * rounds, sweeps, accuracies, costs)) is not None:
        sweeps.append(sweep)
        for proposal in sweep.proposals:
            accuracies[proposal.candidate.key] = accuracy(proposal.candidate, lambda epoch, value: None)
    return sweeps, accuracies


def test_the_sweeps_are_the_papers():
    sweeps, accuracies = search()
    assert [(p.round, p.kind) for p in sweeps] == [
        (0, "directions"),
        (0, "combination"),
        (1, "directions"),
        (1, "combination"),
    ]
    base = settings().strategy.base
    first, combined, second, _ = sweeps
    assert first.origin == combined.origin == base
    for proposal in first.proposals[1:]:
        (direction,) = proposal.directions
        changed = {
            "arrangement": proposal.candidate.arch.blocks != base.arch.blocks,
            "depth": sum(proposal.candidate.arch.blocks) != sum(base.arch.blocks),
            "width": proposal.candidate.arch.expansion != base.arch.expansion,
            "groups": proposal.candidate.arch.groups != base.arch.groups,
        }
        assert changed[direction]
    assert {p.directions[0] for p in first.proposals[1:]} == {"depth", "width", "groups"}
    assert all(len(proposal.directions) > 1 for proposal in combined.proposals)
    after_round_one = {p.candidate.key: accuracies[p.candidate.key] for ph in sweeps[:2] for p in ph.proposals}
    assert second.origin == best(after_round_one, BUDGETS, prices())
    assert {d for p in second.proposals for d in p.directions} <= set(combined.promising)


def test_the_same_seed_gives_the_same_candidates_whatever_the_order_of_results():
    sweeps, accuracies = search()
    assert search()[0] == sweeps
    backwards = dict(reversed(accuracies.items()))
    costs = prices()
    for number, sweep in enumerate(sweeps):
        known = {key: value for key, value in backwards.items() if _planned(key, sweeps[:number])}
        assert next_sweep(settings(**SIZE).strategy, [BUDGETS] * 2, sweeps[:number], known, costs) == sweep
    assert search(seed=1)[0] != sweeps


def _planned(key: str, sweeps: list[Sweep]) -> bool:
    return any(proposal.candidate.key == key for sweep in sweeps for proposal in sweep.proposals)


@pytest.mark.parametrize("budget", [Budget("bops", 1.2e6), Budget("flops", 1.2e6), Budget("bytes", 1.5e5)])
def test_nothing_outside_the_budget_is_proposed(budget):
    _, accuracies = search(budgets=(budget,))
    costs = prices()
    assert len(accuracies) > 5
    assert all(costs.of(Candidate.parse(key), budget.cost) <= budget.limit for key in accuracies)


def test_a_base_outside_the_budget_is_the_origin_but_not_trained():
    base = settings().strategy.base
    limit = 0.9 * prices().of(base, "bops")
    sweeps, accuracies = search(budgets=(Budget("bops", limit),))
    assert sweeps[0].origin == base
    assert base.key not in accuracies
    assert accuracies
    assert sweeps[2].origin != base


def test_nothing_is_proposed_twice_as_new():
    sweeps, _ = search(per_direction=3, combinations=5)
    for number, sweep in enumerate(sweeps):
        if sweep.kind == "combination":
            assert not any(_planned(p.candidate.key, sweeps[:number]) for p in sweep.proposals)
        keys = [p.candidate.key for p in sweep.proposals]
        assert len(set(keys)) == len(keys)


def test_a_direction_that_never_pays_is_not_followed():
    def only_depth_pays(candidate: Candidate, report) -> float:
        return 0.5 + 0.01 * sum(candidate.arch.blocks) - 0.1 * (set(candidate.arch.expansion) != {0.25})

    sweeps, _ = search(accuracy=only_depth_pays, directions=("depth", "width"), budgets=(Budget("bops", 5e6),))
    assert {d for p in sweeps[0].proposals for d in p.directions} == {"depth", "width"}
    assert sweeps[1].promising == ("depth",)
    assert {d for p in sweeps[2].proposals for d in p.directions} == {"depth"}


def test_a_direction_that_the_budget_hinders_is_combined_with_one_that_saves():
    """Widening does not fit by itself, and narrowing loses: together with groups, which cost little, it wins."""
    base = settings().strategy.base
    limit = 1.02 * prices().of(base, "bops")

    def width_pays(candidate: Candidate, report) -> float:
        return 0.5 + 0.2 * sum(map(float, candidate.arch.expansion)) - 0.001 * sum(candidate.arch.groups)

    space = settings().space | {"groups": [1, 4]}
    sweeps, accuracies = search(
        accuracy=width_pays, directions=("width", "groups"), budgets=(Budget("bops", limit),), space=space
    )
    assert "width" in sweeps[1].promising
    winner = best(accuracies, (Budget("bops", limit),), prices())
    assert sum(winner.arch.expansion) > sum(base.arch.expansion)
    assert max(winner.arch.groups) > 1


def test_the_winner_is_on_the_pareto_front():
    for seed in range(5):
        _, accuracies = search(seed)
        winner = best(accuracies, BUDGETS, prices())
        points = [(accuracies[key], prices().of(Candidate.parse(key), "bops")) for key in accuracies]
        assert dict(zip(accuracies, undominated(points), strict=True))[winner.key]


def test_of_equally_accurate_networks_the_cheapest_wins():
    cheap, dear = "1111-0.25-1:1:1:1 +1x1 x1", "1112-0.25-1:1:1:1 +1x1 x1"
    assert best({dear: 0.9, cheap: 0.9}, (), prices()).key == cheap
    assert best({}, (), prices()) is None


def test_undominated():
    assert undominated([(0.9, 2.0), (0.9, 1.0), (0.8, 1.0), (0.5, 0.5), (0.9, 1.0)]) == [False, True, False, True, True]


def test_impossible_budgets_are_refused_with_what_would_be_needed():
    strategy = settings().strategy
    with pytest.raises(ConfigError, match=r"no network within bops=10: the cheapest .* with bops=\d+"):
        check_possible(strategy, (Budget("bops", 10),), prices())
    check_possible(strategy, BUDGETS, prices())


def test_sweeps_survive_json():
    for sweep in search()[0]:
        assert Sweep.from_dict(sweep.to_dict()) == sweep
