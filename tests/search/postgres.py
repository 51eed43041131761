"""A PostgreSQL server for one test: its own data directory, a Unix socket, no network, ended at the end."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Where initdb and pg_ctl are: on the PATH, or where Debian puts them."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def server(password: str = "") -> Iterator[str]:
    """The address of a fresh server's database. The directory's name is short: a socket's path may have 107 bytes.

    Args:
        password: that its user must give; the address does not have it.
    """
    folder = binaries()
    assert folder is not None
    with tempfile.TemporaryDirectory(prefix="ebnet-pg-") as home:
        prefix: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(home, "postgres", "postgres")
            prefix = ["runuser", "-u", "postgres", "--"]
        data, secret = f"{home}/data", Path(home) / "password"
        secret.write_text(password or "none")
        secret.chmod(0o644)
        method = "scram-sha-256" if password else "trust"
        initdb = (folder / "initdb", "-D", data, "-U", "ebnet", "-A", method, "--pwfile", secret)
        _run(*prefix, *initdb, "--no-sync", "-E", "UTF8")
        options = f"-c listen_addresses='' -c unix_socket_directories='{home}' -c fsync=off"
        _run(*prefix, folder / "pg_ctl", "-D", data, "-l", f"{home}/log", "-o", options, "-w", "start")
        try:
            yield f"postgresql://ebnet@/postgres?host={home}"
        finally:
            _run(*prefix, folder / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _run(*command: object) -> None:
    # Not captured: the server inherits the pipe, and reading it would wait for the server's end.
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, cwd="/")
