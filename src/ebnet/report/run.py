"""The report of a training run."""

from pathlib import Path

from ebnet.cost.profile import Profile, profile
from ebnet.cost.table import megabytes, short
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.recipe.phases import PhaseName
from ebnet.recipe.settings import Recipe
from ebnet.report.costs import cost_figures, float_bytes
from ebnet.report.interval import interval_told
from ebnet.report.mistakes import mistakes
from ebnet.report.observe import Observation, classes_of_experts, embedding, observe
from ebnet.report.origin import origin
from ebnet.report.page import Report, Section, Thumbnails
from ebnet.report.routing import routing_steadiness, routing_warnings
from ebnet.report.speed import read_bench, speed_facts, speed_sections
from ebnet.report.training import TrainingRecord, curves, expert_usage, phase_accuracy, read_training
from ebnet.runs.directory import RunDirectory, load_phase
from ebnet.train.pictures import Pictures


def run_report(path: Path, bench: Path | None = None, data: Path | None = None) -> Report:
    """Of a run that is finished, running or interrupted; what is not there yet is left out.

    Args:
        bench: a bench file of the packed network, for the sections on speed.
        data: where the data set lies now, if it has moved since the training.
    """
    run = RunDirectory(path)
    recipe = run.recipe()
    record = read_training(run)
    if data is not None:
        recipe = recipe.changed({"data.root": str(data.resolve())})
    network, phase = _network(run)
    pictures = None if network is None else Pictures.open(recipe.data)
    images = None if pictures is None else len(pictures.val)
    sections = [
        Section(
            "Training",
            "First the real-valued teacher, then binary activations, then several experts, then binary weights.",
            [*curves(record), *phase_accuracy(record, images)],
        )
    ]
    thumbnails: Thumbnails | None = None
    facts = _accuracy_facts(record, images)
    if network is not None and pictures is not None:
        seen = observe(network, pictures)
        expert_sections, thumbnails = _experts(network, seen, record, recipe)
        sections += expert_sections
        sections.append(Section("Mistakes", "", mistakes(seen)))
        costs = profile(network.config, recipe.data.size)
        text = f"Counted, not measured; {network.config.arch} at {recipe.data.size} x {recipe.data.size}."
        sections.append(Section("Cost", text, cost_figures(costs)))
        facts += _cost_facts(costs)
    measured = None if bench is None else read_bench(bench)
    if measured is not None:
        sections += speed_sections(measured)
        facts += speed_facts(measured)
    sections.append(origin(run.path, recipe, images, measured))
    subtitle = f"{recipe.network.arch}, {recipe.network.experts} experts, {recipe.data.name}, seed {recipe.seed}"
    if phase not in (None, "stage2"):
        subtitle += f"; so far: {record.title(phase)}"
    return Report(f"{recipe.name}: an expert binary network", subtitle, facts, sections, thumbnails)


def _cost_facts(costs: Profile) -> list[tuple[str, str]]:
    plain = float_bytes(costs)
    return [
        (short(costs.bops), f"binary operations per image, beside {short(costs.real_macs)} real multiply-accumulates"),
        (
            megabytes(costs.bytes_fp32),
            f"as bits and fp32 reals; a plain network, one expert, all floats: {megabytes(plain)}",
        ),
    ]


def _network(run: RunDirectory) -> tuple[ExpertBinaryNetwork | None, PhaseName | None]:
    """The finished network, or that of the last phase which has one."""
    if run.final.is_dir():
        return load_pretrained(run.final), "stage2"
    trained = run.trained()
    return (load_phase(run.path, trained[-1]), trained[-1]) if trained else (None, None)


def _experts(
    network: ExpertBinaryNetwork, seen: Observation, record: TrainingRecord, recipe: Recipe
) -> tuple[list[Section], Thumbnails | None]:
    experts = network.config.experts
    scatter, thumbnails = embedding(seen, experts)
    if not seen.layers:
        return [Section("Features", "", scatter)], thumbnails
    text = (
        f"Every binary layer has {experts} sets of weights and a gate that picks one for each image. "
        f"Seen on {len(seen.labels):,} test images, of which {seen.accuracy:.1%} are recognised."
    )
    warnings = routing_warnings(record, recipe)
    if warnings:
        text += f" Warning: {' '.join(warnings)}"
    figures = [*routing_steadiness(record), *expert_usage(record.usage), *classes_of_experts(seen, experts), *scatter]
    return [Section("Experts", text, figures)], thumbnails


def _accuracy_facts(record: TrainingRecord, images: int | None) -> list[tuple[str, str]]:
    """With the interval that so many validation images leave."""
    names: dict[PhaseName, str] = {"stage2": "top-1, Stage II: all binary", "teacher": "top-1, real-valued teacher"}
    facts = []
    for phase, title in names.items():
        if phase in record.results:
            top1 = record.results[phase].top1
            interval = f"; 95 % interval {interval_told(top1, images)}" if images else ""
            facts.append((f"{top1:.1%}", title + interval))
    return facts
