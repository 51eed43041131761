"""The report of a search: accuracy against cost, what paid, and every candidate."""

from pathlib import Path

from ebnet.report.figure import Bars, Colouring, Scatter, Series
from ebnet.report.page import Report, Section, Table
from ebnet.search.budget import TITLES
from ebnet.search.directory import open_study
from ebnet.search.population import Member, Population, population
from ebnet.search.view import shown

GROUPS = ["trained", "on the Pareto front", "winner"]


def study_report(path: Path) -> Report:
    """Of a study that is finished or running."""
    found = population(open_study(path))
    trained = [member for member in found.members if member.accuracy is not None]
    budgets = " and ".join(map(str, found.budgets)) or "no budget"
    facts = [(str(len(trained)), "networks trained"), (str(sum(m.on_front for m in trained)), "on the Pareto front")]
    if found.winner is not None:
        facts += [
            (f"{100 * (found.winner.accuracy or 0):.1f}%", "top-1 of the winner, Stage I"),
            (shown(found.cost, found.winner.costs[found.cost]), f"its {TITLES[found.cost]}"),
        ]
    sections = [
        Section("Accuracy against cost", "", [_pareto(found, trained)] if trained else []),
        Section("Which direction paid", "", _payoffs(found)),
        Section("Candidates", "", table=_candidates(found, trained)),
    ]
    state = "finished" if found.finished else "running"
    return Report(f"Search {found.name}", f"{state}; {budgets}", facts, [s for s in sections if s.figures or s.table])


def _pareto(found: Population, trained: list[Member]) -> Scatter:
    def group(member: Member) -> int:
        return 2 if found.winner is not None and member.candidate == found.winner.candidate else int(member.on_front)

    front = [i for i, member in enumerate(trained) if member.on_front]
    return Scatter(
        "pareto",
        f"Stage I accuracy against {TITLES[found.cost]}",
        "Up and to the left is better; the dashed line joins networks that no other beats in both.",
        [member.costs[found.cost] for member in trained],
        [100 * (member.accuracy or 0) for member in trained],
        [_tip(member) for member in trained],
        [Colouring("standing", [group(member) for member in trained], GROUPS)],
        TITLES[found.cost],
        "top-1 %",
        front=sorted(front, key=lambda i: trained[i].costs[found.cost]),
    )


def _tip(member: Member) -> str:
    costs = "\n".join(f"{TITLES[name]} {shown(name, value)}" for name, value in member.costs.items())
    return f"{member.candidate.key}\ntop-1 {member.accuracy:.2%}\n{costs}"


def _payoffs(found: Population) -> list[Bars]:
    if not found.payoffs:
        return []
    return [
        Bars(
            "payoffs",
            "Points of accuracy gained by the best network of each direction",
            "Against the network its round started from; a direction that lost accuracy has no bar.",
            [f"round {p.round + 1}: {p.direction}{' (kept)' if p.promising else ''}" for p in found.payoffs],
            [
                Series(
                    "gain",
                    [max(0.0, 100 * p.gain) for p in found.payoffs],
                    [
                        f"{p.origin.key} -> {p.best.key}\n{100 * p.gain:+.2f} points at {p.cost_ratio:.2f}x cost"
                        for p in found.payoffs
                    ],
                )
            ],
            [f"{100 * p.gain:+.2f} at {p.cost_ratio:.2f}x" for p in found.payoffs],
        )
    ]


def _candidates(found: Population, trained: list[Member]) -> Table:
    names = list(dict.fromkeys(name for member in trained for name in member.costs))
    rows = [
        [member.candidate.key, f"{100 * (member.accuracy or 0):.2f}", *(shown(n, member.costs[n]) for n in names)]
        for member in sorted(trained, key=lambda m: -(m.accuracy or 0))
    ]
    return Table(["network", "top-1 %", *(TITLES[name] for name in names)], rows)
