// Node's side of web.py: `node web_node.mjs FOLDER PACKAGES EBNET`, then a line of JSON for each line it is sent.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { prepare, round } from "./web_peers.mjs";

const [folder, packages, ebnet] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(packages, "x.js")));
const host = {
  read: async (name) => new Uint8Array(await readFile(join(folder, name))),
  module: (name) => (name === "ebnet" ? import(pathToFileURL(ebnet)) : require(name)),
  tfjsFolder: `${join(packages, "node_modules", "@tensorflow", "tfjs-backend-wasm", "dist")}/`,
};
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
console.log = console.info = console.warn = () => {};
const { runs, said, missing } = await prepare(host);
tell({ said, missing });
for await (const _ of createInterface({ input: process.stdin })) tell(await round(runs));
