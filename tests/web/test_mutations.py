"""Damaged files in the browser's engine: refused by name or run, and nothing else happens."""

import base64

import pytest

from tests.runtime.tiny_file import TinyFile
from tests.web.node import STATIC, node

SCRIPT = """
// One core after the other in this thread: a worker for each of thousands of files would take hours.
const source = readFileSync(new URL(bundle), "utf8");
const worker = JSON.parse(/^const WORKER = (".*");$/m.exec(source)[1]);
const wasm = new WebAssembly.Module(Buffer.from(/^const WASM = "(.*)";$/m.exec(source)[1], "base64"));
const classes = new Function(`${worker.split("const serve =")[0]}; return [Core, EbnetError];`);
const [Core, Fault] = classes();
let state = seed;
const random = (below) => {  // xorshift
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
  return (state >>> 0) % below;
};
const good = Uint8Array.from(Buffer.from(content, "base64"));
const header = 8 + Number(new DataView(good.buffer).getBigUint64(0, true));
const seen = {};
for (let i = 0; i < count; i += 1) {
  const length = random(20) === 0 ? random(good.length) : good.length;
  const bytes = good.slice(0, length);
  for (let change = random(6); change >= 0 && length > 0; change -= 1) {
    const at = random(random(3) === 0 ? length : Math.min(length, header));
    const digit = bytes[at] >= 48 && bytes[at] <= 57;
    bytes[at] = digit && random(4) > 0 ? 48 + random(10) : random(3) === 0 ? bytes[at] ^ (1 << random(8)) : random(256);
  }
  let outcome = "ran";
  try {
    const core = await Core.make(wasm);
    const network = core.open(bytes);
    const { size, in_channels: channels } = network.preprocessing;
    const { logits } = core.run(new Uint8Array(size * size * channels).fill(100), 1, size, size);
    if (!logits.every(Number.isFinite)) outcome = "not finite";
  } catch (fault) {
    outcome = fault instanceof Fault ? fault.code : `foreign: ${fault.stack}`;
    if (outcome === "Internal") outcome = `foreign: ${fault.message}`;
  }
  seen[outcome] = (seen[outcome] ?? 0) + 1;
}
tell(seen);
"""


def mutate(count: int, seed: int) -> dict[str, int]:
    content = base64.b64encode(TinyFile().content()).decode()
    seen: dict[str, int] = node(SCRIPT, bundle=(STATIC / "ebnet.js").as_uri(), content=content, count=count, seed=seed)
    assert sum(seen.values()) == count
    return seen


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files_are_refused_by_name_or_run(count: int) -> None:
    seen = mutate(count, seed=count)
    assert [outcome for outcome in seen if outcome.startswith(("foreign", "not finite"))] == [], seen
    assert seen["ran"] > 0
    assert len(seen) > 10  # faults of many kinds
