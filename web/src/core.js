// One network in WebAssembly: the other side of native/web/api.cpp.

import { EbnetError } from "./errors.js";

const ENVIRONMENT = ["EBNET_KERNELS=fixed"]; // browsers' clocks are too coarse to time kernels by
const NO_SUCH_FUNCTION = 52; // WASI's ENOSYS: there are no files here

/** What the module asks of its host: a clock, the environment, and functions of files that do not exist. */
const host = (memory) => {
  const view = () => new DataView(memory().buffer);
  const missing = () => NO_SUCH_FUNCTION;
  const wasi = {
    clock_time_get: (clock, precision, at) => {
      view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    environ_sizes_get: (count, bytes) => {
      view().setUint32(count, ENVIRONMENT.length, true);
      view().setUint32(bytes, ENVIRONMENT.reduce((sum, text) => sum + text.length + 1, 0), true);
      return 0;
    },
    environ_get: (pointers, bytes) => {
      for (const text of ENVIRONMENT) {
        view().setUint32(pointers, bytes, true);
        pointers += 4;
        for (const letter of text + "\0") view().setUint8(bytes++, letter.charCodeAt(0));
      }
      return 0;
    },
    proc_exit: (code) => {
      throw new EbnetError("Internal", `the engine ended itself with ${code}`);
    },
  };
  const orMissing = (functions) => new Proxy(functions, { get: (of, name) => of[name] ?? missing });
  return { wasi_snapshot_preview1: orMissing(wasi), env: orMissing({ emscripten_notify_memory_growth: () => {} }) };
};

const TEXT = new TextDecoder();

/** A layer's name of today: files of earlier versions call `3.0.1` `stages.3.0.1`. */
const layerName = (written) => written.replace(/^stages\.(?=\d+\.\d+\.\d+$)/, "");

export class Core {
  #exports;
  #engine = 0;
  #dead = null; // what a trap said: nothing may be run after it

  /** An empty core of the compiled module. */
  static async make(module) {
    const core = new Core();
    const instance = await WebAssembly.instantiate(module, host(() => core.#exports.memory));
    core.#exports = instance.exports;
    core.#exports._initialize();
    return core;
  }

  /** Calls a function of the module; a trap becomes an error like any other. */
  #call(name, ...args) {
    if (this.#dead) throw this.#dead;
    try {
      return this.#exports[name](...args);
    } catch (fault) {
      if (fault instanceof EbnetError) throw fault;
      this.#dead = new EbnetError("Internal", `the engine stopped: ${fault.message}; load the network again`);
      throw this.#dead;
    }
  }

  #text(at) {
    const bytes = new Uint8Array(this.#exports.memory.buffer);
    return TEXT.decode(bytes.slice(at, bytes.indexOf(0, at)));
  }

  #check(error) {
    if (error === 0) return;
    const said = this.#text(this.#call("ebnet_last_error"));
    const colon = said.indexOf(": ");
    throw new EbnetError(said.slice(0, colon), said.slice(colon + 2));
  }

  /** use(address) with `size` bytes of the module's memory. */
  #with(size, use) {
    const at = this.#call("malloc", size + 16);
    if (at === 0) throw new EbnetError("OutOfMemory", `no room for ${size} bytes`);
    try {
      return use((at + 15) & ~15);
    } finally {
      if (!this.#dead) this.#call("free", at);
    }
  }

  /** Reads and verifies a packed file; returns what it says of itself. */
  open(bytes) {
    if (bytes.byteLength > 2 ** 30) throw new EbnetError("FileTooLarge", `the file has ${bytes.byteLength} bytes`);
    this.#with(bytes.byteLength, (data) => this.#with(4, (handle) => {
      new Uint8Array(this.#exports.memory.buffer).set(bytes, data);
      this.#check(this.#call("ebnet_open", data, bytes.byteLength, handle));
      this.#engine = new DataView(this.#exports.memory.buffer).getUint32(handle, true);
    }));
    const said = (name) => JSON.parse(this.#text(this.#call(`ebnet_${name}`, this.#engine)));
    const classes = this.#call("ebnet_classes", this.#engine);
    const labels = Array.from({ length: classes }, (_, i) => this.#text(this.#call("ebnet_label", this.#engine, i)));
    const binary = said("program").filter((op) => op.op === "binary");
    return {
      classes,
      labels: labels.map((label, i) => label || String(i)),
      preprocessing: said("preprocessing"),
      network: said("network"),
      layers: binary.map((op) => ({ name: layerName(op.name), experts: op.experts ?? 1 })),
      isa: this.#text(this.#call("ebnet_isa", this.#engine)),
      bytes: bytes.byteLength,
    };
  }

  /** Logits [batch][classes] and experts [layer][batch] of a Uint8Array (NHWC) or Float32Array (NCHW, normalised). */
  run(images, batch, height, width) {
    const classes = this.#call("ebnet_classes", this.#engine);
    const layers = this.#call("ebnet_binary_layers", this.#engine);
    const real = images instanceof Float32Array;
    const [logitBytes, expertBytes] = [4 * batch * classes, 8 * batch * layers];
    return this.#with(images.byteLength, (input) => this.#with(logitBytes, (logits) => this.#with(expertBytes, (experts) => {
      new images.constructor(this.#exports.memory.buffer, input, images.length).set(images);
      const begin = performance.now();
      const error = this.#call(
        "ebnet_run", this.#engine, real ? input : 0, real ? 0 : input, batch, height, width, logits, experts,
      );
      const milliseconds = performance.now() - begin;
      this.#check(error);
      const { buffer } = this.#exports.memory;
      const chosen = Array.from(new BigInt64Array(buffer, experts, batch * layers), Number);
      return { logits: new Float32Array(buffer.slice(logits, logits + logitBytes)), experts: chosen, milliseconds };
    })));
  }
}
