"""The gates' steadiness: the lines are the records' numbers, and the warning names the setting."""

import pytest

from ebnet.recipe.settings import Recipe
from ebnet.report.routing import routing_steadiness, routing_warnings
from ebnet.report.training import TrainingRecord
from tests.train.tiny import tiny


def _epoch(stage: str, number: int, **churn: float) -> dict[str, object]:
    layers = {
        f"stages.0.0.conv{i + 1}": {"churn": value, "margin": 0.5, "distance": 0.25, "usage": [0.5, 0.5]}
        for i, value in enumerate(churn.values())
    }
    return {"stage": stage, "epoch": number, "routing": layers}


def _record() -> TrainingRecord:
    one = {"stage": "stage1-one-expert", "epoch": 0}
    experts = [_epoch("stage1-experts", 0, a=0.6, b=0.2), _epoch("stage1-experts", 1, a=0.1, b=0.4)]
    return TrainingRecord([one, *experts, _epoch("stage2", 0, a=0.1, b=0.1)], {}, 2)


def _names(recipe: Recipe) -> str:
    return " ".join(routing_warnings(_record(), recipe))


def test_lines_are_the_mean_and_the_most_restless_layer() -> None:
    (figure,) = routing_steadiness(_record())
    average, most = figure.series
    assert list(average.values) == pytest.approx([40, 25, 10])
    assert list(most.values) == pytest.approx([60, 40, 10])
    assert list(average.x) == [2, 3, 4]
    assert [span.label for span in figure.spans] == ["Stage I, 2 experts", "Stage II"]
    assert "40.0% of the images changed expert" in average.tips[0]
    assert "60.0% of the images" in most.tips[0]


def test_a_restless_stage_is_warned_of_as_a_whole() -> None:
    said = _names(tiny())
    assert said.startswith("Stage I, 2 experts: 32% of the images change expert")
    assert "routing.gate_rate = 0.1" in said
    assert "Stage II" not in said
    assert _names(tiny(log__churn=0.5)) == ""


def test_runs_without_the_watch_have_no_figure() -> None:
    record = TrainingRecord([{"stage": "stage1-experts", "epoch": 0}], {}, 2)
    assert routing_steadiness(record) == []
    assert routing_warnings(record, tiny()) == []
