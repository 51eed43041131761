"""Churn and usage under two routings: only the seeds that both have, drawn from the records alone."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ebnet.reproduce import routing_figure
from ebnet.reproduce.claim import load_claim
from ebnet.reproduce.routing_figure import has_routing, save_routing
from ebnet.reproduce.verdict import Judgement, Run


def _run(variant: str, seed: int, *churn: float) -> Run:
    epochs = [{"top1": 0.5, "churn": value} for value in churn] or [{"top1": 0.5}]
    experts = {"stage": "stage1-experts", "top1": 0.5, "epochs": epochs, "usage": {"0.0.0": [0.5, 0.5]}}
    last = experts | {"stage": "stage2", "usage": {"0.0.0": [0.75, 0.25], "0.0.1": [0.35, 0.65]}}
    return Run(variant, seed, (experts, last))


def _judgement(*runs: Run) -> Judgement:
    return Judgement(load_claim("experts"), runs, ())


def test_shared_seeds_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(routing_figure, "FigureCanvasAgg", drawn.append)
    ours = [_run("4 experts", 100, 0.1, 0.3), _run("4 experts", 101, 0.2, 0.0), _run("4 experts", 102, 0.9, 0.9)]
    paper = [_run("4 experts, paper's routing", seed, 0.5, 0.6) for seed in (100, 101)]
    judgement = _judgement(_run("1 expert", 100), *ours, *paper)
    assert has_routing(judgement)
    save_routing(judgement, tmp_path / "routing.svg")
    churn, usage = drawn[0].axes
    means = {line.get_label(): list(line.get_ydata()) for line in churn.lines if not line.get_label().startswith("_")}
    assert means["4 experts"] == pytest.approx([15, 15, 15, 15])  # of both phases; seed 102 has no partner
    assert means["4 experts, paper's routing"] == pytest.approx([50, 60, 50, 60])
    assert [bar.get_width() for bar in usage.patches] == pytest.approx([70, 70])
    assert (tmp_path / "routing.svg").stat().st_size > 0


def test_there_is_nothing_to_draw_without_two_routings() -> None:
    assert not has_routing(_judgement())
    assert not has_routing(_judgement(_run("4 experts", 100, 0.1)))
    assert not has_routing(_judgement(_run("4 experts", 100, 0.1), _run("1 expert", 100)))
    assert not has_routing(_judgement(_run("4 experts", 100, 0.1), _run("8 experts", 101, 0.1)))
