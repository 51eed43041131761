// The page's side: `load` a packed network, `predict` what an image shows, `run` tensors. The engine works in a worker,
// so that the page stays alive.
import { WASM } from "./built.js"; // made by web/build.py
import { Engine, isNode } from "./engine.js";
import { EbnetError } from "./errors.js";

export { EbnetError };

/** The bytes of base64, by a plain loop: a function for each of half a million letters takes longer than compiling them. */
const decoded = (base64) => {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
};

let compiled = null; // once for all networks of a page
const moduleOf = () => {
  compiled ??= WebAssembly.compile(decoded(WASM));
  return compiled;
};

const bytesOf = async (source) => {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (typeof Blob !== "undefined" && source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (isNode && !/^(https?|blob|data):/.test(String(source))) {
    const { readFile } = await import("node:fs/promises");
    try {
      return new Uint8Array(await readFile(source));
    } catch (fault) {
      throw new EbnetError(fault.code === "ENOENT" ? "FileMissing" : "FileUnreadable", `${source}: ${fault.message}`);
    }
  }
  let reply;
  try {
    reply = await fetch(source);
  } catch (fault) {
    throw new EbnetError("FileUnreadable", `${source}: ${fault.message}`);
  }
  if (!reply.ok) throw new EbnetError("FileUnreadable", `${source}: the server answers ${reply.status}`);
  return new Uint8Array(await reply.arrayBuffer());
};

/** RGBA pixels of whatever a page has: { data, width, height }. */
const pixelsOf = async (image) => {
  if (image?.data !== undefined && image.width > 0 && image.height > 0) return rgba(image);
  if (typeof document === "undefined" && typeof OffscreenCanvas === "undefined") {
    throw new EbnetError("ArgumentInvalid", "expected { data, width, height } with 1, 3 or 4 bytes a pixel");
  }
  let drawn = image;
  if (image instanceof Blob) {
    try {
      drawn = await createImageBitmap(image);
    } catch {
      throw new EbnetError("ArgumentInvalid", "the file is not an image that this browser can read");
    }
  }
  const width = drawn.videoWidth ?? drawn.naturalWidth ?? drawn.width;
  const height = drawn.videoHeight ?? drawn.naturalHeight ?? drawn.height;
  if (!(width > 0 && height > 0)) throw new EbnetError("ArgumentInvalid", "the image is empty or not loaded yet");
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(drawn, 0, 0);
  return context.getImageData(0, 0, width, height);
};

const rgba = ({ data, width, height }) => {
  const channels = data.length / (width * height);
  if (channels === 4) return { data, width, height };
  if (channels !== 1 && channels !== 3) {
    throw new EbnetError(
      "ArgumentInvalid", `${data.length} values for ${width} x ${height} pixels: expected 1, 3 or 4 bytes a pixel`,
    );
  }
  const out = new Uint8Array(4 * width * height).fill(255);
  for (let i = 0; i < width * height; i += 1) {
    for (let c = 0; c < 3; c += 1) out[4 * i + c] = data[i * channels + (channels === 3 ? c : 0)];
  }
  return { data: out, width, height };
};

class Network {
  #engines;

  static async load(source, { threads = 1 } = {}) {
    if (!Number.isInteger(threads) || threads < 1) {
      throw new EbnetError("ArgumentInvalid", `threads is ${threads}; expected a whole number from 1 on`);
    }
    const network = new Network();
    // All at once: workers start while the network comes and the engine is compiled.
    const coming = Promise.all([bytesOf(source), moduleOf()]);
    coming.catch(() => {}); // told below, where there are workers to be ended
    network.#engines = await Promise.all(Array.from({ length: threads }, Engine.start));
    try {
      const [bytes, module] = await coming;
      const [said] = await Promise.all(network.#engines.map((engine) => engine.ask("load", { module, bytes })));
      return Object.assign(network, said, { threads });
    } catch (fault) {
      network.close();
      throw fault;
    }
  }

  /** The engine that has the least to do. */
  get #idlest() {
    return this.#engines.reduce((best, engine) => (engine.waiting < best.waiting ? engine : best));
  }

  async predict(image, { top = 5, invert = false } = {}) {
    const { data, width, height } = await pixelsOf(image);
    const ran = await this.#idlest.ask("predict", { image: { data, width, height }, invert });
    const largest = ran.logits.reduce((a, b) => Math.max(a, b));
    const weights = Array.from(ran.logits, (logit) => Math.exp(logit - largest));
    const sum = weights.reduce((a, b) => a + b);
    const classes = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, top);
    return {
      label: this.labels[classes[0]],
      classes,
      labels: classes.map((i) => this.labels[i]),
      probabilities: classes.map((i) => weights[i] / sum),
      experts: this.layers.map((layer, i) => ({ ...layer, chosen: ran.experts[i] })),
      milliseconds: ran.milliseconds,
      logits: ran.logits,
    };
  }

  async run(images, { batch = 1, height = this.preprocessing.size, width = this.preprocessing.size } = {}) {
    const expected = batch * height * width * this.preprocessing.in_channels;
    if (!(images instanceof Float32Array) && !(images instanceof Uint8Array || images instanceof Uint8ClampedArray)) {
      throw new EbnetError("ArgumentInvalid", "expected a Float32Array (NCHW, normalised) or a Uint8Array (NHWC)");
    }
    if (images.length !== expected || expected === 0) {
      throw new EbnetError(
        "ArgumentInvalid",
        `${images.length} values; expected ${batch} x ${height} x ${width} x ${this.preprocessing.in_channels}`,
      );
    }
    if (batch === 1 || this.threads === 1) return this.#idlest.ask("run", { images, batch, height, width });
    // A share of the batch for each engine: logits follow each other, experts do so within a layer.
    const size = expected / batch;
    const first = (i) => Math.floor(batch * i / this.threads);
    const shares = await Promise.all(this.#engines.map((engine, i) => {
      const [begin, end] = [first(i), first(i + 1)];
      if (begin === end) return { logits: [], experts: [], milliseconds: 0 };
      return engine.ask("run", { images: images.slice(begin * size, end * size), batch: end - begin, height, width });
    }));
    const experts = this.layers.flatMap((_, layer) => shares.flatMap((share, i) => {
      const some = first(i + 1) - first(i);
      return share.experts.slice(layer * some, (layer + 1) * some);
    }));
    const logits = new Float32Array(batch * this.classes);
    shares.forEach((share, i) => logits.set(share.logits, first(i) * this.classes));
    return { logits, experts, milliseconds: Math.max(...shares.map((share) => share.milliseconds)) };
  }

  close() {
    for (const engine of this.#engines) engine.end();
  }
}

export const load = (source, options) => Network.load(source, options);
