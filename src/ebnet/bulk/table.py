"""Tables as files: JSON lines, CSV, Parquet."""

import csv
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ebnet.bulk.rows import Row
from ebnet.errors import ConfigError
from ebnet.files import explained, require_folder

FORMATS = (".parquet", ".csv", ".jsonl")


def check_format(path: Path) -> None:
    """Refuse what cannot be written before any work is done."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"-o {path}: the name must end in {', '.join(FORMATS)}")
    require_folder(path)
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ConfigError('Parquet needs pyarrow: pip install "ebnet[parquet]", or write .csv or .jsonl') from error


def write_table(path: Path, columns: dict[str, type], parts: Iterable[list[Row]]) -> None:
    """Write rows as they come; the file appears whole or not at all."""
    writer = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}[path.suffix]
    with _replaced(path) as temporary:
        writer(temporary, columns, parts)


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.tmp")
    with explained(path):
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _write_jsonl(path: Path, columns: dict[str, type], parts: Iterable[list[Row]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for rows in parts:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def _write_csv(path: Path, columns: dict[str, type], parts: Iterable[list[Row]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        for rows in parts:
            writer.writerows(rows)


def _write_parquet(path: Path, columns: dict[str, type], parts: Iterable[list[Row]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {str: pa.string(), float: pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in parts:
            writer.write_table(pa.Table.from_pylist(rows, schema))
