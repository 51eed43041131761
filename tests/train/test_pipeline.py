"""The whole policy on a tiny set, in this process."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import ebnet
from ebnet.errors import CheckpointError, ConfigError
from ebnet.nn import Precision
from ebnet.recipe.settings import PHASE_NAMES
from ebnet.train import RunDirectory, RunResult, load_phase, train
from ebnet.train.loop import Trainer
from ebnet.train.phases import PHASES, start_network
from ebnet.train.progress import Reporter
from tests.train.tiny import pictures, tiny

SMALL = {"schedule__batch_size": 16, "schedule__epochs": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return train(tiny(**SMALL), tmp_path_factory.mktemp("run") / "run", datasets=pictures())


def test_every_stage_is_there_with_its_precision_and_experts(run: RunResult) -> None:
    assert tuple(run.phases) == PHASE_NAMES
    expected = {
        "teacher": (Precision.REAL, 1),
        "stage1-one-expert": (Precision.BINARY_INPUT, 1),
        "stage1-experts": (Precision.BINARY_INPUT, 2),
        "stage2": (Precision.BINARY, 2),
    }
    for name in PHASE_NAMES:
        network = load_phase(run.out, name)
        assert (network.precision, network.config.experts) == expected[name]
        directory = RunDirectory(run.out).phase(name).path
        assert {path.name for path in directory.iterdir()} == {
            "last.safetensors",
            "best.safetensors",
            "state.json",
            *(["previous.safetensors"] if (directory / "previous.safetensors").exists() else []),
        }
        state = json.loads((directory / "state.json").read_text())
        assert state["position"]["result"]["top1"] == run.phases[name].top1
        assert 0 <= run.phases[name].top1 <= run.phases[name].top5 <= 1


def test_the_final_network_can_be_taken_away(run: RunResult) -> None:
    assert run.final is not None
    network = ebnet.load_pretrained(run.final)
    assert network.precision is Precision.BINARY
    trained = load_phase(run.out, "stage2")
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), trained.parameters(), strict=True))
    preprocessing = json.loads((run.final / "preprocessing.json").read_text())
    assert preprocessing["size"] == preprocessing["resize"] == preprocessing["crop"] == 8
    assert preprocessing["in_channels"] == len(preprocessing["mean"]) == 3
    assert len(json.loads((run.final / "labels.json").read_text())) == 10


def test_the_metrics_tell_each_stage_and_term(run: RunResult) -> None:
    records = [json.loads(line) for line in (run.out / "metrics.jsonl").read_text().splitlines()]
    epochs = [record for record in records if record["kind"] == "epoch"]
    assert [record["stage"] for record in epochs] == list(PHASE_NAMES)
    assert set(epochs[0]["train"]) == {"loss", "labels"}
    assert set(epochs[3]["train"]) == {"loss", "labels", "logits", "attention"}
    total = epochs[3]["train"]["labels"] + epochs[3]["train"]["logits"] + epochs[3]["train"]["attention"]
    assert epochs[3]["train"]["loss"] == pytest.approx(total)
    assert epochs[1]["usage"] == {}
    for shares in epochs[2]["usage"].values():
        assert len(shares) == 2
        assert sum(shares) == pytest.approx(1.0)
    assert all(record["images_per_second"] > 0 and record["learning_rate"] > 0 for record in records)


def test_a_finished_run_is_not_trained_again(run: RunResult) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.out.rglob("*.safetensors")}
    again = train(tiny(**SMALL), run.out, datasets=pictures())
    assert again.to_dict() == run.to_dict()
    assert {path: path.stat().st_mtime_ns for path in run.out.rglob("*.safetensors")} == before


def test_the_same_seed_gives_the_same_network_and_another_one_does_not(run: RunResult, tmp_path: Path) -> None:
    state = torch.get_rng_state()
    one = {**SMALL, "stages": ["teacher"]}
    for name, seed in (("same", 3), ("other", 4)):
        train(tiny(**one, seed=seed), tmp_path / name, datasets=pictures())
    assert torch.equal(state, torch.get_rng_state()), "the caller's random numbers must not be disturbed"
    weights = [
        load_phase(path, "teacher").classifier.weight for path in (run.out, tmp_path / "same", tmp_path / "other")
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_each_stage_starts_from_the_one_before(run: RunResult) -> None:
    teacher = load_phase(run.out, "teacher")
    weights = {name: value.clone() for name, value in teacher.state_dict().items()}
    kernels = {name: layer.weight.detach().clone() for name, layer in teacher.binary_layers().items()}
    one = start_network(teacher.config, PHASES["stage1-one-expert"], teacher, 0)
    assert all(torch.equal(value, weights[name]) for name, value in one.state_dict().items())
    assert one.precision is Precision.BINARY_INPUT
    experts = start_network(one.config.with_experts(2), PHASES["stage1-experts"], one, 0)
    for name, layer in experts.binary_layers().items():
        for expert in layer.expert_weights:  # type: ignore[union-attr]
            assert torch.equal(expert, kernels[name])
    two = start_network(experts.config, PHASES["stage2"], experts, 0)
    assert two.precision is Precision.BINARY
    deeper = start_network(
        tiny(network__arch="1112-0.0625-1:1:1:1").network.config(10, 3, 1), PHASES["teacher"], two, 0
    )
    assert deeper.config.arch.blocks == (1, 1, 1, 2)


def test_the_teacher_is_loaded_frozen_and_in_eval_mode(
    run: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    step = Trainer.step

    def watched(self: Trainer, *arguments: Any) -> dict[str, float]:
        assert self.teacher is not None
        first = self.phase.name not in seen
        seen.setdefault(self.phase.name, {k: v.clone() for k, v in self.teacher.state_dict().items()})
        assert not any(module.training for module in self.teacher.modules())
        assert not any(parameter.requires_grad for parameter in self.teacher.parameters())
        terms = step(self, *arguments)
        assert all(parameter.grad is None for parameter in self.teacher.parameters())
        before = seen[self.phase.name]
        assert all(torch.equal(value, before[name]) for name, value in self.teacher.state_dict().items())
        assert not first or terms["logits"] > 0
        return terms

    monkeypatch.setattr(Trainer, "step", watched)
    ready = {"stage.teacher.checkpoint": str(run.out / "stages" / "0-teacher")}
    train(tiny(**SMALL).changed(ready), tmp_path / "run", datasets=pictures())
    for student, teacher in (
        ("stage1-one-expert", "teacher"),
        ("stage1-experts", "teacher"),
        ("stage2", "stage1-experts"),
    ):
        trained = load_phase(tmp_path / "run", teacher).state_dict()  # type: ignore[arg-type]
        assert trained.keys() == seen[student].keys()
        assert all(torch.equal(value, trained[name]) for name, value in seen[student].items())


def test_a_ready_checkpoint_takes_the_place_of_a_stage(run: RunResult, tmp_path: Path) -> None:
    recipe = tiny(**SMALL).changed(
        {
            "stages": ["teacher", "stage1-experts", "stage2"],
            "stage.teacher.checkpoint": str(run.out / "stages" / "0-teacher" / "last.safetensors"),
            "stage.stage1-experts.checkpoint": str(run.out / "stages" / "2-stage1-experts"),
            "stage.stage2.checkpoint": str(run.final),
        }
    )
    result = train(recipe, tmp_path / "run", datasets=pictures())
    for name in result.phases:
        assert result.phases[name].source is not None
        assert result.phases[name].top1 == run.phases[name].top1
    assert result.final is not None
    assert (result.final / "model.safetensors").read_bytes() == (run.out / "final" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("stage", "source", "message"),
    [
        ("stage2", "stages/0-teacher", "precision real, but stage2 is binary"),
        ("stage1-experts", "stages/1-stage1-one-expert", "experts is 1, not 2"),
        ("teacher", "nowhere", "neither a directory with config.json"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    run: RunResult, tmp_path: Path, stage: str, source: str, message: str
) -> None:
    recipe = tiny(**SMALL).changed(
        {
            "stages": [stage],
            f"stage.{stage}.checkpoint": str(run.out / source),
            **{f"stage.{name}": {} for name in PHASE_NAMES if name != stage},
            **({} if stage == "teacher" else {f"stage.{stage}.distill_from": None}),
        }
    )
    with pytest.raises(CheckpointError, match=message):
        train(recipe, tmp_path / "run", datasets=pictures())


def test_a_deeper_teacher_teaches_by_stage(tmp_path: Path) -> None:
    recipe = tiny(**SMALL).changed(
        {
            "stages": ["teacher", "stage1-one-expert"],
            "stage.teacher.arch": "1122-0.125-1:1:1:1",
            "distillation.attention_after": "stage",
        }
    )
    result = train(recipe, tmp_path / "run", datasets=pictures())
    assert load_phase(result.out, "teacher").config.arch.blocks == (1, 1, 2, 2)
    assert load_phase(result.out, "stage1-one-expert").config.arch.blocks == (1, 1, 1, 1)
    assert result.final is None
    assert result.last.name == "stage1-one-expert"


def test_experts_can_start_from_scratch_and_one_expert_is_an_ordinary_run(tmp_path: Path) -> None:
    scratch = tiny(**SMALL).changed({"stages": ["stage1-experts"], "stage": {}})
    assert load_phase(train(scratch, tmp_path / "a", datasets=pictures()).out, "stage1-experts").config.experts == 2
    one = scratch.changed({"network.experts": 1, "stages": ["stage1-one-expert", "stage1-experts", "stage2"]})
    result = train(one, tmp_path / "b", datasets=pictures())
    assert result.phases["stage2"].usage == {}


def test_a_caller_hears_of_each_epoch_and_may_stop_the_run(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    records: list[dict[str, Any]] = []

    def stop_after_two(record: dict[str, Any]) -> None:
        records.append(record)
        if len(records) == 2:
            raise Enough

    recipe = tiny(**SMALL).changed({"stages": ["teacher"], "schedule.epochs": 3, "log.validate_epochs": 2})
    with pytest.raises(Enough):
        train(recipe, tmp_path / "run", datasets=pictures(), on_epoch=stop_after_two)
    assert [record["epoch"] for record in records] == [0, 1]
    assert [("val" in record) for record in records] == [False, True]
    result = train(recipe, tmp_path / "run", datasets=pictures())
    assert result.phases["teacher"].epochs == 3


def test_other_ways_to_compute_train_too(tmp_path: Path) -> None:
    recipe = tiny(**SMALL).changed({"compute.channels_last": True, "compute.accumulation": 4})
    assert train(recipe, tmp_path / "run", datasets=pictures()).final is not None
    with pytest.raises(ConfigError, match="use a multiple of 5"):
        train(tiny(**SMALL, compute__accumulation=5), tmp_path / "other", datasets=pictures())
    with pytest.raises(ConfigError, match="cannot be used here"):
        train(tiny(**SMALL, compute__device="cuda:9"), tmp_path / "other", datasets=pictures())
    assert not (tmp_path / "other").exists()


class Heard(Reporter):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


def test_units_that_train_through_torch_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, recipe = Heard(), tiny(**SMALL, stages=["stage1-experts"], stage={})
    train(recipe, tmp_path / "native", datasets=pictures(), reporter=heard)
    assert not any("through torch" in message for message in heard.messages)
    monkeypatch.setenv("EBNET_TRAIN", "torch")
    train(recipe, tmp_path / "torch", datasets=pictures(), reporter=heard)
    told = [message for message in heard.messages if "through torch" in message]
    assert told == ["stage1-experts: stages.0.0.units.0 and 8 more units through torch (EBNET_TRAIN=torch)"]
