"""The report of a training run."""

from pathlib import Path

from ebnet.cost.profile import profile
from ebnet.cost.table import megabytes, short
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.recipe.phases import PhaseName
from ebnet.recipe.settings import Recipe
from ebnet.report.costs import cost_figures, float_bytes
from ebnet.report.observe import classes_of_experts, embedding, observe
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
    sections = [
        Section(
            "Training",
            "First the real-valued teacher, then binary activations, then several experts, then binary weights.",
            [*curves(record), *phase_accuracy(record)],
        )
    ]
    network, phase = _network(run)
    thumbnails: Thumbnails | None = None
    facts = _accuracy_facts(record)
    if network is not None:
        expert_sections, thumbnails = _experts(network, record, recipe)
        sections += expert_sections
        costs = profile(network.config, recipe.data.size)
        text = f"Counted, not measured; {network.config.arch} at {recipe.data.size} x {recipe.data.size}."
        sections.append(Section("Cost", text, cost_figures(costs)))
        facts += [
            (short(costs.bops), "binary operations per picture"),
            (
                megabytes(costs.bytes_fp32),
                f"as bits and fp32 reals; {megabytes(float_bytes(costs, costs.config.experts))} as floats",
            ),
        ]
    if bench is not None:
        measured = read_bench(bench)
        sections += speed_sections(measured)
        facts += speed_facts(measured)
    subtitle = f"{recipe.network.arch}, {recipe.network.experts} experts, {recipe.data.name}"
    if phase not in (None, "stage2"):
        subtitle += f"; so far: {record.title(phase)}"
    return Report(f"{recipe.name}: an expert binary network", subtitle, facts, sections, thumbnails)


def _network(run: RunDirectory) -> tuple[ExpertBinaryNetwork | None, PhaseName | None]:
    """The finished network, or that of the last phase which has one."""
    if run.final.is_dir():
        return load_pretrained(run.final), "stage2"
    trained = run.trained()
    return (load_phase(run.path, trained[-1]), trained[-1]) if trained else (None, None)


def _experts(
    network: ExpertBinaryNetwork, record: TrainingRecord, recipe: Recipe
) -> tuple[list[Section], Thumbnails | None]:
    seen, experts = observe(network, Pictures.open(recipe.data)), network.config.experts
    scatter, thumbnails = embedding(seen, experts)
    if not seen.layers:
        return [Section("Features", "", scatter)], thumbnails
    text = (
        f"Every binary layer has {experts} sets of weights and a gate that picks one for each picture. "
        f"Seen on {len(seen.labels)} test pictures, of which {seen.accuracy:.1%} are recognised."
    )
    warnings = routing_warnings(record, recipe)
    if warnings:
        text += f" Warning: {' '.join(warnings)}"
    figures = [*routing_steadiness(record), *expert_usage(record.usage), *classes_of_experts(seen, experts), *scatter]
    return [Section("Experts", text, figures)], thumbnails


def _accuracy_facts(record: TrainingRecord) -> list[tuple[str, str]]:
    names: dict[PhaseName, str] = {"stage2": "top-1, Stage II: all binary", "teacher": "top-1, real-valued teacher"}
    return [(f"{record.results[n].top1:.1%}", title) for n, title in names.items() if n in record.results]
