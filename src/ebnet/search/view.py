"""Tables of a study, for the terminal."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from ebnet.search.budget import TITLES, Cost
from ebnet.search.population import Member, Population


def shown(cost: Cost, value: float) -> str:
    """A cost in the unit people use."""
    return {
        "bops": f"{value / 1e6:,.2f} M",
        "flops": f"{value / 1e6:,.2f} M",
        "bytes": f"{value / 1e3:,.1f} kB",
        "latency_ms": f"{value:.3f} ms",
    }[cost]


def summary_lines(found: Population) -> Iterator[str]:
    """The study in sentences."""
    settings, sweeps = found.decisions.settings, found.decisions.sweeps
    budgets = " and ".join(map(str, found.budgets)) or "none"
    yield f"study {found.name}: {'finished' if found.finished else 'running'}; budget {budgets}; seed {settings.seed}"
    yield f"base {settings.strategy.base}; candidates train {settings.epochs} epochs of Stage I of {settings.full.name}"
    if settings.machine is not None:
        yield f"latencies are of {settings.machine}"
    counts = ((state, found.count(state)) for state in ("trained", "pruned", "failed", "running", "waiting"))
    where = (
        f"round {sweeps[-1].round + 1} of {len(found.decisions.rounds)}, {sweeps[-1].kind}" if sweeps else "no sweep"
    )
    yield f"{where}; " + ", ".join(f"{count} {state}" for state, count in counts if count)
    if found.winner is not None:
        yield f"winner: {found.winner.candidate} with {_percent(found.winner.accuracy)} %, {_costs(found.winner)}"


def members_table(found: Population) -> Table:
    """All candidates, the best first, with the costs that are limited; those on the Pareto front are marked."""
    costs: list[Cost] = [budget.cost for budget in found.budgets] or [found.cost]
    table = Table(title=f"{found.name}: accuracy against {TITLES[found.cost]}", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("candidate", no_wrap=True)
    for column in ("top-1 %", *(TITLES[name] for name in costs)):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    in_order = sorted(found.members, key=lambda m: (m.accuracy is None, -(m.accuracy or 0.0), m.entry.number))
    for member in in_order:
        winner = found.winner is not None and member.candidate == found.winner.candidate
        table.add_row(
            member.candidate.key,
            _percent(member.entry.accuracy),
            *(shown(name, member.costs[name]) if name in member.costs else "" for name in costs),
            "winner" if winner else _remark(member),
            style="bold" if winner else None,
        )
    return table


def payoffs_table(found: Population) -> Table:
    """Which direction paid: the best network of each direction against the origin of its round."""
    table = Table(title="which direction paid (* kept as promising)", box=SIMPLE)
    for column in ("direction", "best network", "gain", "cost"):
        table.add_column(column, justify="left" if column in ("direction", "best network") else "right", no_wrap=True)
    for payoff in found.payoffs:
        table.add_row(
            f"{payoff.round + 1} {payoff.direction}{' *' if payoff.promising else ''}",
            payoff.best.key,
            f"{100 * payoff.gain:+.2f}",
            f"x{payoff.cost_ratio:.2f}",
        )
    return table


def _remark(member: Member) -> str:
    if member.entry.state == "trained":
        return "front" if member.on_front else ""
    return member.entry.fault or member.entry.state


def _percent(accuracy: float | None) -> str:
    return "" if accuracy is None else f"{100 * accuracy:.2f}"


def _costs(member: Member) -> str:
    return ", ".join(f"{TITLES[name]} {shown(name, value)}" for name, value in member.costs.items())
