"""A peer in a process of its own: its libraries disturb no other's, and if it dies it dies alone."""

import os
import signal
import time
from collections.abc import Callable
from importlib import import_module, metadata
from itertools import cycle
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from peers import SIDE, Peer


class NotAvailable(Exception):
    """A peer that cannot be measured here; the message is the reason."""


class Contestant:
    """The process of a peer, which is built when this is made. Closing it ends the process."""

    def __init__(self, peer: Peer, batch: int, threads: int) -> None:
        self.peer = peer
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, peer, batch, threads), daemon=True)
        self.process.start()
        theirs.close()
        self.version = self._ask()

    def run(self, calls: int) -> float:
        """The seconds of some calls, one after another."""
        return self._ask(calls)

    def close(self) -> None:
        self.pipe.close()
        self.process.join()

    def _ask(self, calls: int | None = None) -> Any:
        try:
            if calls is not None:
                self.pipe.send(calls)
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            answer = NotAvailable(f"died of {signal.Signals(-code).name}" if code < 0 else "its process ended")
        if isinstance(answer, NotAvailable):
            self.close()
            raise answer
        return answer


def _serve(pipe: Connection, peer: Peer, batch: int, threads: int) -> None:
    """Build, say the version or why not, then time calls whenever asked."""
    _be_silent()
    try:
        run = build(peer, batch, threads)
        pipe.send(metadata.version(peer.package))
    except Exception as problem:
        pipe.send(NotAvailable(reason(problem)))
        return
    while True:
        try:
            calls = pipe.recv()
        except EOFError:
            return
        start = time.perf_counter()
        for _ in range(calls):
            run()
        pipe.send(time.perf_counter() - start)


def _be_silent() -> None:
    """Runtimes talk on both channels, some from C++."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def build(peer: Peer, batch: int, threads: int) -> Callable[[], object]:
    """A call of the peer on the next of some batches, after its logits were compared with torch's."""
    import torch

    from peers.case import Case
    from peers.networks import CHECK, calibration, make
    from pictures import error, pictures

    torch.set_num_threads(threads)
    module, function = peer.build.split(":")
    builder = getattr(import_module(module), function)
    model = make(peer.network)
    with torch.no_grad():
        run = builder(Case(model, calibration(), batch, threads))
        images = pictures(max(CHECK, batch), SIDE, seed=2)
        order = (0, 2, 3, 1) if run.channels_last else (0, 1, 2, 3)
        batches = [np.ascontiguousarray(some.permute(order).numpy()) for some in images.split(batch)]
        if peer.tolerance < inf:
            logits = torch.cat([torch.tensor(run.call(some)) for some in batches])
            if (off := error(logits, model(images))) > peer.tolerance:
                raise NotAvailable(f"its logits are not the network's: {off:.2g} off")
    endless = cycle(batches)
    return lambda: run.call(next(endless))


def reason(problem: Exception) -> str:
    """In one line."""
    if isinstance(problem, ModuleNotFoundError):
        return f"{problem.name} is not installed (extra `bench`)"
    return (str(problem).splitlines() or [type(problem).__name__])[0]
