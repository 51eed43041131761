"""Several callers at the same time."""

import threading
from collections.abc import Callable


def at_once(call: Callable[[int], None], callers: int) -> None:
    """`call(0)` to `call(callers - 1)`, each in a thread of its own; returns when all have."""
    threads = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
