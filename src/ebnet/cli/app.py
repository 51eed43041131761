"""The `ebnet` program: one command a file, each imported only when it is called.

Importing every command's dependencies would make `ebnet --help` slow, so a command's module imports at its top only
what its signature needs, and the rest inside the function.
"""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from ebnet.cli import (
    bench,
    compare,
    data,
    demo,
    eval,
    export_onnx,
    export_web,
    import_official,
    inspect,
    memory,
    methods,
    pack,
    predict,
    report,
    reproduce,
    results,
    search,
    serve,
    summary,
    train,
    verify,
    zoo,
)
from ebnet.cli.plain import PlainGroup, speak_plainly
from ebnet.errors import EbnetError

app = typer.Typer(
    name="ebnet",
    cls=PlainGroup,
    help="Design, train, search, compress and run expert binary networks.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import ebnet

        typer.echo(f"ebnet {ebnet.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


for command in (
    summary.summary,
    memory.memory,
    methods.methods,
    import_official.import_official,
    train.train,
    eval.eval,
    pack.pack,
    inspect.inspect,
    predict.predict,
    verify.verify,
    bench.bench,
    export_onnx.export_onnx,
    export_web.export_web,
    compare.compare,
    reproduce.reproduce,
    results.results,
    demo.demo,
    report.report,
    serve.serve,
):
    app.command()(command)  # under the function's name
for name, group in {"data": data.data, "search": search.search, "zoo": zoo.zoo}.items():
    app.add_typer(group, name=name)
speak_plainly(app)


EXTRAS = {
    "torch": "train",
    "pydantic": "train",
    "scipy": "train",
    "mlxtend": "train",
    "tensorboard": "train",
    "optuna": "search",
    "sqlalchemy": "search",
    "psycopg": "search",
    "matplotlib": "report",
    "sklearn": "report",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "pyarrow": "parquet",
}
"""Packages that not every installation has, and the extra that brings each."""

WHOLE = {
    "demo": "train,report",
    "report": "train,report",
    "search": "search",
    "export-onnx": "train,onnx",
}
"""Commands that need more than what is found missing first: all of it, so that nobody installs twice."""


def main() -> None:
    """Run the program; the project's own errors, and a package that is lacking, become one line and exit code 1."""
    try:
        app()
    except EbnetError as error:
        _complain(str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = WHOLE.get(sys.argv[1], EXTRAS[package])
        _complain(f'this command needs {package}: pip install "ebnet[{extra}]"')


def _complain(text: str) -> None:
    # A message repeats what was given, and that may hold a terminal's control sequences.
    text = "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)
    Console(stderr=True).print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)
    sys.exit(1)
