"""How fast a packed file runs, next to what else could run the network: from a bench file."""

from pathlib import Path
from typing import Any

from ebnet.errors import ConfigError
from ebnet.files import read_json
from ebnet.names import todays_name
from ebnet.report.figure import Bars, Series
from ebnet.report.page import Report, Section, Table

_CONDITIONS = (
    "One image at a time. All contestants took turns, so other work on the machine disturbed them alike, and each "
    "found the caches as the others had left them: alone, the engine is faster. For small images torch's time is "
    "mostly the overhead of its layers."
)


def read_bench(path: Path) -> dict[str, Any]:
    """What `ebnet bench FILE --json` printed, the demo's bench.json, or the JSON of `benchmarks/latency.py`."""
    bench = read_json(path, "a bench file", ConfigError, f"make it with `ebnet bench FILE --json > {path}`")
    if isinstance(bench, dict) and {"timings", "ops"} <= bench.keys():
        return bench
    if isinstance(bench, dict) and bench.get("peers"):
        return bench | {"path": str(path)}
    raise ConfigError(f"{path} is not a bench file: it lacks timings and ops; `ebnet bench FILE --json` makes one")


def speed_sections(bench: dict[str, Any]) -> list[Section]:
    """Latency against peers where they were measured; all timings and where the time goes, where those were."""
    sections = []
    if "peers" in bench:
        missing = "".join(f" Not available: {one['name']} ({one['reason']})." for one in bench.get("missing", []))
        sections.append(Section("Latency against others", _CONDITIONS + missing, [latency_bars(bench["peers"])]))
    if "timings" in bench:
        side = f"{bench['size']} x {bench['size']}"
        text = f"{side} images, {bench['isa']} kernels. The engine alone: nothing else took turns with it."
        sections.append(Section("The engine", text, [_ops(bench["ops"])], _timings(bench["timings"])))
    return sections


def _timings(timings: list[dict[str, Any]]) -> Table:
    rows = [
        [
            f"{t['threads']} thread{'s' if t['threads'] > 1 else ''}, batch {t['batch']}",
            *(f"{1e3 * t[key]:.3f}" for key in ("minimum", "median", "p90", "p99")),
            f"{t['images_per_second']:,.0f}",
        ]
        for t in timings
    ]
    return Table(["engine", "min ms", "median ms", "p90 ms", "p99 ms", "images/s"], rows)


def bench_report(path: Path) -> Report:
    """The report of a bench file alone."""
    bench = read_bench(path)
    facts = speed_facts(bench)
    if "timings" in bench:
        fastest = max(bench["timings"], key=lambda t: t["images_per_second"])
        facts += [
            (
                f"{fastest['images_per_second']:,.0f}",
                f"images per second at most: batch {fastest['batch']}, {_threads(fastest)}",
            ),
            (bench["isa"], "instruction set of the kernels"),
        ]
    made = bench.get("made")
    subtitle = f"{path}; {made['machine']}; {made['date']}; {made['versions']}" if made else str(path)
    return Report(f"Speed of {Path(bench['path']).name}", subtitle, facts, speed_sections(bench))


def speed_facts(bench: dict[str, Any]) -> list[tuple[str, str]]:
    """One time of the engine, with its meaning; where peers took turns with it, that time, and the first of them."""
    peers = bench.get("peers", [])
    if len(peers) > 1:
        ours, theirs = peers[0], peers[1]
        how = f"{_threads({'threads': bench.get('threads', 1)})}, in turns"
        return [
            (f"{1e3 * ours['median']:.2f} ms", f"median of one image in the engine, {how}"),
            (f"{theirs['median'] / ours['median']:.1f}x", f"faster than {theirs['name']}, {how}"),
        ]
    if "timings" not in bench:
        return []
    single = min(bench["timings"], key=lambda t: (t["batch"], t["threads"]))
    what = "one image" if single["batch"] == 1 else f"a batch of {single['batch']}"
    return [(f"{1e3 * single['median']:.2f} ms", f"median of {what} in the engine, {_threads(single)}, alone")]


def _threads(timing: dict[str, Any]) -> str:
    return "one thread" if timing["threads"] == 1 else f"{timing['threads']} threads"


def latency_bars(peers: list[dict[str, Any]]) -> Bars:
    """The engine is the first of the peers."""
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
        f"{1e6 * op['seconds']:.1f} µs, {op['share']:.1%}"
        + (f"\n{op['gmacs_per_second']:.1f} GMAC/s" if op["gmacs_per_second"] else "")
        for op in ops
    ]
    kinds = list(dict.fromkeys(op["kind"] for op in ops))
    return Bars(
        "engine-ops",
        "Where the time of one image goes",
        "Median time of each op of the packed program, in its order. Batch norm, gate, scale, PReLU and skip are part "
        "of their binary op.",
        [todays_name(op["name"]) for op in ops],
        [
            Series(kind.replace("_", " "), [1e6 * op["seconds"] * (op["kind"] == kind) for op in ops], tips)
            for kind in kinds
        ],
        [f"{1e6 * op['seconds']:.1f} µs" for op in ops],
    )
