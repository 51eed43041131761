"""How each documented command is executed: whole, unless a line of these tables says what is changed, and why.

A new command in the documents needs no line here: it is run as it stands. One that takes long gets a `Shorter`; one
that names something of the reader's own gets a word in `STANDS_FOR`, or a file in `scratch.py`.
"""

from dataclasses import dataclass, field

SERVER, POSTGRES = "http://127.0.0.1:8000", "postgresql://me@db/search"
"""Words that stand for a server which is started for the command."""

STANDS_FOR = {
    "DIR": "photos",
    "IMAGES": "photos",
    "/data/imagenet": "photos",
    "/mnt/imagenet": "photos",
    "SHARDS": "shards",
    "RUN": "runs/demo",
    "FILE": "net.ebn",
    "NAME": "cifar100",
}
"""A reader's own paths, and what the scratch directory has in their place."""


@dataclass(frozen=True)
class Shorter:
    """Changes to every command that matches; all that match are made, in this order."""

    pattern: str
    reason: str
    append: str = ""
    """Put after the documented words, where a later option replaces an earlier one."""
    instead: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    """Of a script: assignments at its top, and the value they get."""


def _set(**values: str) -> str:
    return " ".join(f"--set {key.replace('__', '.')}={value}" for key, value in values.items())


_SMALL = {"network__arch": "1111-0.125-1:1:1:1", "schedule__epochs": "1", "schedule__warmup_epochs": "0"}
ONE_EPOCH = _set(**_SMALL, network__experts="2", schedule__milestones="[]")
SMALL_PHOTOGRAPHS = _set(schedule__batch_size="4", data__size="32", data__resize="36", data__workers="0")
STRIPES = _set(schedule__batch_size="100", data__name="generated", data__size="16")
STRIPES_IN_MEMORY = _set(
    data__name="generated", data__size="8", data__resize="8", data__memory_side="8", schedule__batch_size="500"
)
COMPARED = _set(**_SMALL, network__stem_width="8", stage__stage2__epochs="1")
TRIED = "--seeds 1 --jobs 1 " + _set(
    network__arch="1111-0.0625-1:1:1:1",
    schedule__epochs="1",
    schedule__milestones="[]",
    stage__stage2__epochs="1",
    stage__stage2__milestones="[]",
)
ONE_STEP = "--directions depth --per-direction 1 --combinations 1 --rounds 1 --epochs 1"

SHORTER = [
    Shorter(r"ebnet demo", "a smaller network, one epoch a stage, 1,000 generated pictures", f"{ONE_EPOCH} {STRIPES}"),
    Shorter(r".*ebnet train (demo|winner)", "as the demo", f"{ONE_EPOCH} {STRIPES}"),
    Shorter(
        r".*ebnet train imagenet(te|-distilled|-strong-teacher)? (?!--show)",
        "a few small photographs, one epoch",
        f"{ONE_EPOCH} {SMALL_PHOTOGRAPHS}",
    ),
    Shorter(r".*ebnet train fine-tune", "one epoch", _set(schedule__epochs="1", schedule__warmup_epochs="0")),
    Shorter(r"ebnet train images", "a few small photographs, one epoch", f"{ONE_EPOCH} {_set(data__size='32')}"),
    Shorter(r"ebnet train imagenette", "the same pictures, decoded once", _set(data__memory_side="40")),
    Shorter(r".*ebnet train imagenet-strong", "a teacher as small", _set(stage__teacher__arch="1121-0.125-1:1:1:1")),
    Shorter(r".*stage\.stage2\.epochs=30", "one epoch", _set(stage__stage2__epochs="1")),
    Shorter(r"torchrun", "two processes: four of them on two cores only wait", "", {"per-node 4": "per-node 2"}),
    Shorter(r"ebnet search demo", "one direction, one network of one epoch", f"{ONE_STEP} {STRIPES}"),
    Shorter(
        r"ebnet search imagenet",
        "one direction, from a small network, on small photographs",
        f"{ONE_STEP} --base 1111-0.125-1:1:1:1 {SMALL_PHOTOGRAPHS}",
    ),
    Shorter(r"ebnet bench (?!.*--seconds)", "a tenth of the time", "--seconds 0.1"),
    Shorter(r"ebnet data bench", "a fiftieth of the time", "--seconds 0.1"),
    Shorter(r"ebnet serve", "any free port: 8000 may be taken", "--port 0"),
    Shorter(r"python examples/(swap|unet|fine)", "three steps; test_examples.py runs all", constants={"STEPS": "3"}),
    Shorter(r"python benchmarks/(latency|startup|throughput)\.py", "one round instead of many", "--rounds 1"),
    Shorter(r"chrt -f 10 python benchmarks/methods\.py", "small images, one round", "--side 32 --rounds 1"),
    Shorter(r"python benchmarks/latency\.py", "one peer; tests/benchmarks has them all", "--peers torch"),
    Shorter(
        r"python benchmarks/latency\.py --real-time --plot",
        "a right that not everybody has, and a file in the checkout",
        "",
        {" --real-time --plot latency.svg": ""},
    ),
    Shorter(r"python benchmarks/callers\.py", "one round", "--rounds 1"),
    Shorter(r"python benchmarks/comparison\.py", "one round of one method", "sbaseline --rounds 1"),
    Shorter(r"python benchmarks/throughput\.py", "one thread", "--threads 1"),
    Shorter(r"python benchmarks/training\.py", "one round of one small network", "evidence-short --rounds 1"),
    Shorter(r"python benchmarks/search\.py", "three seeds instead of 200", "--seeds 3"),
    Shorter(r"python benchmarks/full_scale\.py", "one step of small pictures", "--size 32 --batch 2 --steps 1"),
    Shorter(
        r"ebnet reproduce (?!--list|short)",
        "stripes of 8 pixels on a tiny network, one seed of one epoch, without the claims' own lengths",
        f"{TRIED} {STRIPES_IN_MEMORY}",
        {" --data cifar10-folders": ""},
    ),
    Shorter(
        r"ebnet reproduce short",
        "the same for one claim",
        f"{TRIED} {STRIPES_IN_MEMORY}",
        {"short": "mixup", " --data imagenette": ""},
    ),
    Shorter(
        r"ebnet compare (?!--plan)",
        "stripes of 8 pixels on a tiny network, one seed of one epoch",
        f"--seeds 1 --jobs 1 {COMPARED} {STRIPES_IN_MEMORY}",
        {" --data cifar10-folders": ""},
    ),
    Shorter(r"ebnet compare --data", "two methods instead of all", "bnn reactnet-18"),
    Shorter(
        r"ebnet compare bnn xnor-net xnor-net-pp",
        "two methods instead of eleven",
        "",
        {"bnn xnor-net xnor-net-pp abc-net-5 bi-real rethinking-bnn ir-net reactnet-18": "bnn"}
        | {" sbaseline real-to-bin hwgq": " reactnet-18"},
    ),
    Shorter(
        r"ebnet compare .*--page",
        "docs/ here is the checkout's own",
        "",
        {"docs/comparison.md": "page/comparison.md"},
    ),
    Shorter(r"ebnet results", "docs/ here is the checkout's own", "", {"docs/results.md": "page/results.md"}),
    Shorter(r"ebnet reproduce all", "one claim", "", {"all": "mixup"}),
    Shorter(r"ebnet reproduce why", "one trial", "", {"why": "why-width"}),
    Shorter(r"native/fuzz/run\.sh", "thousands of inputs, not a million", "", {"1000000": "5000"}),
    Shorter(r"pip install (-c|\.)", "everything is found and chosen, nothing installed", "--dry-run -q"),
    Shorter(r"python3 -m venv", "copying pip takes seconds; the next line uses the one here", "--without-pip"),
]

MADE_BY = {
    "demo": "ebnet demo",
    "docs": "mkdocs build --strict",
    "results": "ebnet results results -o docs/results.md",
    "test": 'pytest -q -n 2 --dist loadfile -m "not slow"',
    "test-all": "pytest -q -n 2 --dist loadfile",
}
"""What a target of the Makefile runs at the end, checked with `make -n` and then run in the scratch directory: make
itself would set up an environment, and write into the checkout."""

NOT_RUN = {
    r"make setup$": "comes before these tests; tests/test_maintenance.py asks what it does when",
    r"make test(-all)?$": "would run itself; `make -n` is asked that it runs pytest",
    r"native/emulate/run.sh": "boots an emulated machine for minutes; run it by hand",
}
"""The exceptions."""

SHARE_A_PLACE = {"docs/index.md": "README.md"}
"""Documents whose commands go on from those of another."""

SLOW = (
    "docs/c-api.md",
    "docs/engine.md",
    "docs/engine-measured.md",
    "docs/results.md",
    "docs/search.md",
    "docs/training.md",
)
"""Documents that `make test` leaves to `make test-all`: they compile, measure or train for more than some seconds."""
