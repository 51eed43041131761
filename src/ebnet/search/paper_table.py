"""The paper's own networks priced, for the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from ebnet.cost import profile
from ebnet.search.candidate import Candidate
from ebnet.search.paper import PaperNetwork


def paper_rows(networks: Sequence[PaperNetwork], input_size: int) -> list[dict[str, Any]]:
    """The paper's networks priced: what it prints beside what is counted, with and without the 1x1 convolutions."""
    rows = []
    for network in networks:
        candidate, counts = Candidate.of(network.config), profile(network.config, input_size)
        without = Candidate(candidate.arch, False, candidate.experts).config(network.config)
        rows.append(
            {
                "source": network.source,
                "place": network.place,
                "candidate": candidate.key,
                "remark": network.remark,
                "stage1": network.stage1,
                "stage2": network.stage2,
                "printed_bops": None if network.bops is None else network.bops * 1e9,
                "bops": counts.bops,
                "bops_without_1x1": profile(without, input_size).bops,
                "flops": counts.flops,
                "real_macs": counts.real_macs,
                "bytes_fp32": counts.bytes_fp32,
                "bytes_fp16": counts.bytes_fp16,
            }
        )
    return rows


def paper_table(rows: Sequence[dict[str, Any]]) -> Table:
    """In 80 columns: accuracies as printed, operations as counted and, under "paper", as printed."""
    table = Table(title="the paper's networks: top-1 % as printed, costs as counted", box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("", "network", "I", "II", "BOPs", "no 1x1", "paper", "FLOPs", "MB"):
        table.add_column(column, justify="left" if column == "network" else "right", no_wrap=True)
    source, remarks = None, list(dict.fromkeys(row["remark"] for row in rows if row["remark"]))
    for row in rows:
        if row["source"] != source:
            source = row["source"]
            table.add_row("", f"[bold]{source}[/]")
        mark = f" ({remarks.index(row['remark']) + 1})" if row["remark"] else ""
        table.add_row(
            row["place"],
            row["candidate"].replace(" +1x1", "").removesuffix(" x1") + mark,
            f"{row['stage1'][0]:.1f}" if row["stage1"] else "",
            f"{row['stage2'][0]:.1f}" if row["stage2"] else "",
            f"{row['bops'] / 1e9:.3f}",
            f"{row['bops_without_1x1'] / 1e9:.3f}",
            f"{row['printed_bops'] / 1e9:.1f}" if row["printed_bops"] else "",
            f"{row['flops'] / 1e8:.2f}",
            f"{row['bytes_fp32'] / 1e6:.1f}",
        )
    notes = [f"({number}) {remark}" for number, remark in enumerate(remarks, 1)]
    table.caption = "BOPs in 1e9, FLOPs in 1e8, MB with 32-bit reals\n" + "\n".join(notes)
    table.caption_justify = "left"
    return table
