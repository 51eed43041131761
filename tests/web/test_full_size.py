"""1262-2-4:8:8:16 with 4 experts in Node and in Chromium: the native engine's logits, experts and class."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.browser import watch
from tests.full_size import assert_same, pack_full_size
from tests.web.node import STATIC, node

pytestmark = pytest.mark.slow
RUN = """
const net = await load(source);
const ran = await net.run(Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0)));
"""


@pytest.mark.parametrize("reals", ["fp32", "int8"])
def test_node_and_chromium_say_what_is_said_here(
    reals: Literal["fp32", "int8"], host: tuple[Path, str], browser: Browser
) -> None:
    folder, address = host
    pixels, expected = pack_full_size(folder / "net.ebn", reals)
    text = base64.b64encode(pixels.tobytes()).decode()
    said = node(f"{RUN} tell([Array.from(ran.logits), ran.experts]);", source=str(folder / "net.ebn"), pixels=text)
    assert_same(np.array(said[0]), said[1], expected)
    (folder / "ebnet.js").write_bytes((STATIC / "ebnet.js").read_bytes())
    (folder / "index.html").write_text("<!doctype html>")
    page = watch(browser).page
    page.goto(address)
    script = f"""async ([source, pixels]) => {{
      const {{ load }} = await import("./ebnet.js");
      {RUN}
      return [Array.from(ran.logits), ran.experts];
    }}"""
    said = page.evaluate(script, [f"{address}net.ebn", text])
    assert_same(np.array(said[0]), said[1], expected)
