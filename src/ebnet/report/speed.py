"""How fast a packed file runs, next to what else could run the network: from a bench file."""

import json
from pathlib import Path
from typing import Any

from ebnet.errors import ConfigError
from ebnet.report.figure import Bars, Series
from ebnet.report.page import Report, Section, Table


def read_bench(path: Path) -> dict[str, Any]:
    """What `ebnet bench FILE --json` printed, or the demo's bench.json."""
    try:
        bench = json.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; make it with `ebnet bench FILE --json > {path}`") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not a bench file: {error}") from error
    if not isinstance(bench, dict) or not {"timings", "ops"} <= bench.keys():
        raise ConfigError(f"{path} is not a bench file: it lacks timings and ops; `ebnet bench FILE --json` makes one")
    return bench


def speed_sections(bench: dict[str, Any]) -> list[Section]:
    """Latency against peers where they were measured, all timings, and where the time goes."""
    peers, sections = bench.get("peers", []), []
    if peers:
        sections.append(Section("Latency against torch", _conditions(bench), [_peers(peers)]))
    rows = [
        [
            f"{t['threads']} thread{'s' if t['threads'] > 1 else ''}, batch {t['batch']}",
            *(f"{1e3 * t[key]:.3f}" for key in ("minimum", "median", "p90", "p99")),
            f"{t['images_per_second']:,.0f}",
        ]
        for t in bench["timings"]
    ]
    table = Table(["engine", "min ms", "median ms", "p90 ms", "p99 ms", "images/s"], rows)
    text = f"{bench['size']} x {bench['size']} pictures, {bench['isa']} kernels."
    sections.append(Section("The engine", text, [_ops(bench["ops"])], table))
    return sections


def bench_report(path: Path) -> Report:
    """The report of a bench file alone."""
    bench = read_bench(path)
    best = min(t["median"] for t in bench["timings"] if t["batch"] == min(t["batch"] for t in bench["timings"]))
    fastest = max(t["images_per_second"] for t in bench["timings"])
    facts = [
        (f"{1e3 * best:.2f} ms", "median latency, one picture"),
        (f"{fastest:,.0f}", "pictures per second, at most"),
        (bench["isa"], "instruction set of the kernels"),
    ]
    return Report(f"Speed of {Path(bench['path']).name}", str(path), facts, speed_sections(bench))


def _conditions(bench: dict[str, Any]) -> str:
    return (
        f"One picture at a time, one thread, {bench['isa']} kernels; the runs of all contestants took turns, so that "
        "other work on the machine disturbed them alike."
    )


def _peers(peers: list[dict[str, Any]]) -> Bars:
    ours = peers[0]
    return Bars(
        "latency",
        "Median latency, and how many times the engine's",
        "Shorter is better. Hover for the best run of each.",
        [peer["name"] for peer in peers],
        [
            Series(
                "ms",
                [1e3 * peer["median"] for peer in peers],
                [f"{p['name']}\nmedian {1e3 * p['median']:.3f} ms\nbest {1e3 * p['minimum']:.3f} ms" for p in peers],
            )
        ],
        [
            f"{1e3 * p['median']:.2f} ms" + (f" ({p['median'] / ours['median']:.1f}x)" if p is not ours else "")
            for p in peers
        ],
    )


def _ops(ops: list[dict[str, Any]]) -> Bars:
    tips = [
        f"{op['name']}\n{' '.join(filter(None, (op['kind'], op['kernel'])))}\n"
        f"output {' x '.join(map(str, op['shape']))}\n"
        f"{1e6 * op['seconds']:.1f} us, {op['share']:.1%}"
        + (f"\n{op['gmacs_per_second']:.1f} GMAC/s" if op["gmacs_per_second"] else "")
        for op in ops
    ]
    kinds = list(dict.fromkeys(op["kind"] for op in ops))
    return Bars(
        "engine-ops",
        "Where the time of one picture goes",
        "Median time of each op of the packed program, in its order. Batch norm, gate, scale, PReLU and skip are part "
        "of their binary op.",
        [op["name"] for op in ops],
        [Series(kind, [1e6 * op["seconds"] * (op["kind"] == kind) for op in ops], tips) for kind in kinds],
        [f"{1e6 * op['seconds']:.0f} us" for op in ops],
    )
