// The page's side: `load` a packed network, `predict` what an image shows, `run` tensors. The engine works in a worker,
// so that the page stays alive.
import { WASM, WORKER } from "./built.js"; // made by web/build.py
import { EbnetError } from "./errors.js";

export { EbnetError };

const isNode = typeof process !== "undefined" && Boolean(process.versions?.node);

/** A worker of the bundled source: { post(message), end() }; what it says goes to `hear`, its end to `fail`. */
const startWorker = async (hear, fail) => {
  if (isNode) {
    const { Worker } = await import("node:worker_threads");
    const worker = new Worker(WORKER, { eval: true, execArgv: [] });
    worker.on("message", hear);
    worker.on("error", (error) => fail(error.message));
    worker.unref(); // a program may end while a network is loaded
    return { post: (message) => { worker.ref(); worker.postMessage(message); }, rest: () => worker.unref(), end: () => worker.terminate() };
  }
  const url = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.onmessage = (event) => hear(event.data);
  worker.onerror = (event) => fail(event.message ?? "the worker could not be started");
  return {
    post: (message) => worker.postMessage(message),
    rest: () => {},
    end: () => { worker.terminate(); URL.revokeObjectURL(url); },
  };
};

let compiled = null; // once for all networks of a page
const moduleOf = () => {
  compiled ??= WebAssembly.compile(Uint8Array.from(atob(WASM), (letter) => letter.charCodeAt(0)));
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
  #worker;
  #waiting = new Map();
  #last = 0;
  #ended = null;

  static async load(source, { threads = 1 } = {}) {
    const network = new Network();
    const [bytes, module] = await Promise.all([bytesOf(source), moduleOf()]);
    network.#worker = await startWorker(
      (message) => network.#hear(message),
      (message) => network.#end(new EbnetError("Internal", `the engine stopped: ${message}`)),
    );
    try {
      Object.assign(network, await network.#ask("load", { module, bytes, threads }));
    } catch (fault) {
      network.close();
      throw fault;
    }
    return network;
  }

  #ask(ask, rest) {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#last += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.post({ id, ask, ...rest });
    });
  }

  #hear({ id, answer, error }) {
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.rest();
    if (error) reject(new EbnetError(error.code, error.message)); else resolve(answer);
  }

  #end(error) {
    this.#ended ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }

  async predict(image, { top = 5, invert = false } = {}) {
    const { data, width, height } = await pixelsOf(image);
    const ran = await this.#ask("predict", { image: { data, width, height }, invert });
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
    const { logits, experts, milliseconds } = await this.#ask("run", { images, batch, height, width });
    return { logits, experts, milliseconds };
  }

  close() {
    this.#worker.end();
    this.#end(new EbnetError("ArgumentInvalid", "the network is closed"));
  }
}

export const load = (source, options) => Network.load(source, options);
