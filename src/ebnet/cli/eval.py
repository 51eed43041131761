"""`ebnet eval`: the accuracy of a run's network, at any stage, or of one of the zoo."""

from pathlib import Path
from typing import Annotated

import typer


def eval(
    run: Annotated[Path, typer.Argument(help="Directory of a run, or zoo:NAME.")],
    data: Annotated[
        Path | None, typer.Option(help="Directory of the data set. [default: that of the training]")
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(help="teacher, stage1-one-expert, stage1-experts or stage2. [default: the last trained]"),
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="The epoch that validated best instead of the last.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a trained network on the validation images of its data set.

    Examples:

        ebnet eval runs/demo

        ebnet eval runs/a --data imagenette --stage stage1-experts --json

        ebnet eval zoo:digits-e4
    """
    import json

    from ebnet.names import spoken
    from ebnet.zoo import in_zoo

    in_the_zoo = in_zoo(run)
    if in_the_zoo is not None:
        from ebnet.publish.evaluate import evaluate_packed
        from ebnet.recipe.settings import Data
        from ebnet.zoo import card

        if stage is not None or best:
            raise typer.BadParameter(f"{run} is a finished network: --stage and --best are for runs")
        settings = Data(**card(in_the_zoo).data)
        place = settings if data is None else settings.model_copy(update={"root": str(data)})
        name, evaluation = str(run), evaluate_packed(run, place)
    else:
        from ebnet.train.evaluate_run import evaluate_run

        name, evaluation = evaluate_run(run, phase=stage, data=data, best=best, device=device)
    from ebnet.train.progress import accuracies

    if json_:
        typer.echo(json.dumps({"stage": name} | evaluation.to_dict()))
        return
    typer.echo(f"{name}: {accuracies(evaluation.top1, evaluation.top5)}, loss {evaluation.loss:.4f}")
    for layer, shares in evaluation.usage.items():
        typer.echo(f"  {spoken(layer)}: " + "  ".join(f"{share:6.1%}" for share in shares))
