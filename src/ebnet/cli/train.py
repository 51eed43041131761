"""`ebnet train`: run a recipe, or go on with a run."""

from pathlib import Path
from typing import Annotated

import typer

LOG_WIDTH = 120
"""Columns of tables in a log file, where there is no terminal to ask."""


def train(
    recipe: Annotated[str | None, typer.Argument(help="A shipped recipe (see --list) or a TOML file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the data set.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of the run. [default: runs/RECIPE]")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    take: Annotated[
        list[str] | None,
        typer.Option(metavar="STAGE=PATH", help="Take a trained network instead of training that stage."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="NETWORK", help="Begin with a trained network: a packed file, zoo:NAME, a run."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write RUN/tensorboard.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the shipped recipes.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the recipe with every setting, and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Train a network through the paper's stages; the same command again goes on with an interrupted run.

    The stages: a real-valued *teacher*; *stage1-one-expert* (binary activations); *stage1-experts* (replicated);
    *stage2* (binary weights too). RUN/final holds the finished network.

    Examples:

        ebnet train demo

        ebnet train imagenette --data imagenette --out runs/a --set network.experts=8 --set stage.stage2.epochs=30

        ebnet train demo --out runs/b --take teacher=runs/demo/stages/0-teacher

        ebnet train fine-tune --start zoo:imagenette-e4 --data photos --out runs/c

        torchrun --nproc-per-node 4 --no-python ebnet train imagenet --data /data/imagenet

    Ctrl-C and SIGTERM save first and then end with exit code 130 and 143.
    """
    import json

    from rich.console import Console

    from ebnet.errors import Interrupted
    from ebnet.recipe.library import descriptions

    if list_:
        recipes = descriptions()
        width = max(map(len, recipes))
        typer.echo(json.dumps(recipes) if json_ else "\n".join(f"{n:{width}}  {d}" for n, d in recipes.items()))
        return
    if recipe is None:
        raise typer.BadParameter("which recipe? `ebnet train --list` shows those that are shipped")

    from ebnet.recipe.settings import load_recipe

    chosen = load_recipe(
        recipe, [*(set_ or []), *(f"stage.{item.replace('=', '.checkpoint=', 1)}" for item in take or [])]
    )
    if start is not None:
        chosen = chosen.changed({f"stage.{chosen.stages[0]}.start": start})
    elif chosen.name == "fine-tune" and all(chosen.table(name).start is None for name in chosen.stages):
        raise typer.BadParameter("which network is to be fine-tuned? --start zoo:imagenette-e4, a packed file or a run")
    if show:
        typer.echo(json.dumps(chosen.model_dump(mode="json")) if json_ else chosen.to_toml(), nl=json_)
        return

    from ebnet.train.distributed import speaks_for_all
    from ebnet.train.pipeline import train as run
    from ebnet.train.progress import Reporter, make_reporter

    console = Console(stderr=json_)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    reporter = make_reporter(console) if speaks_for_all() else Reporter()
    try:
        result = run(chosen, out or Path("runs") / chosen.name, data=data, tensorboard=tensorboard, reporter=reporter)
    except Interrupted as interruption:
        reporter.say(str(interruption))
        raise typer.Exit(128 + interruption.signal) from interruption
    finally:
        reporter.close()
    if json_ and speaks_for_all():
        typer.echo(json.dumps(result.to_dict()))
