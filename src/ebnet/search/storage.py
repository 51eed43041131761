"""Where a study lives: a SQLite file in its directory, or a PostgreSQL server that many machines share.

Optuna keeps the candidates (as trials) and does the bookkeeping between processes. What it needs for that is made sure
here: transactions that exclude each other, heartbeats, and errors that say what is wrong before any training.
"""

import warnings
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RDBStorage

from ebnet.errors import StudyError

DATABASE = "study.db"
HEARTBEAT_SECONDS = 10
GRACE_SECONDS = 60
"""A worker not heard of for this long is taken to be dead, and its candidate taken up by another."""

SQLITE_WAIT_SECONDS = 120
CONNECT_SECONDS = 10


def default_url(directory: Path) -> str:
    return f"sqlite:///{(directory / DATABASE).resolve()}"


def complete_url(url: str) -> str:
    """`postgresql://` made to name the driver that is installed with the search."""
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url


def shown_url(url: str) -> str:
    """The address without its password."""
    return sqlalchemy.make_url(url).render_as_string(hide_password=True)


def without_password(url: str) -> str:
    """The address as it may be kept in a file; PostgreSQL's client finds the password in PGPASSWORD or ~/.pgpass."""
    parsed = sqlalchemy.make_url(url)
    bare = sqlalchemy.URL.create(
        parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, parsed.query
    )
    return bare.render_as_string(hide_password=False)


def open_storage(url: str, heartbeat: int = HEARTBEAT_SECONDS, grace: int = GRACE_SECONDS) -> RDBStorage:
    """Connect, and make the tables where there are none yet; a StudyError says why that is not possible."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=ExperimentalWarning)  # heartbeats are called so since 2021
    url = complete_url(url)
    try:
        parsed = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError as error:
        raise StudyError(f"--storage {url}: not an address; write for example postgresql://host/database") from error
    kind = parsed.get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise StudyError(f"--storage {shown_url(url)}: {kind} is not supported; use postgresql:// or sqlite:///")
    arguments: dict[str, Any] = (
        {"timeout": SQLITE_WAIT_SECONDS} if kind == "sqlite" else {"connect_timeout": CONNECT_SECONDS}
    )
    try:
        storage = RDBStorage(
            url,
            engine_kwargs={"connect_args": arguments, "pool_pre_ping": True},
            heartbeat_interval=heartbeat,
            grace_period=grace,
        )
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, RuntimeError, optuna.exceptions.OptunaError) as error:
        raise StudyError(f"the storage {shown_url(url)} cannot be used: {_reason(error)}") from error
    if kind == "sqlite":
        _exclude_each_other(storage.engine)
    return storage


def _exclude_each_other(engine: sqlalchemy.Engine) -> None:
    """Let every SQLite transaction take the write lock when it begins.

    Optuna claims a trial by SELECT ... FOR UPDATE and UPDATE. SQLite has no FOR UPDATE, and its driver opens the
    transaction only at the UPDATE, so two processes could both read "waiting" and both claim the trial.
    """

    @sqlalchemy.event.listens_for(engine, "connect")
    def _(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver shall not begin transactions by itself

    @sqlalchemy.event.listens_for(engine, "begin")
    def _(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine.dispose()  # connections made before do not know of this


def _reason(error: BaseException) -> str:
    """The innermost message, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    original = getattr(error, "orig", None) or error
    return " ".join(str(original).split()) or type(original).__name__
