// One engine in a worker of its own, so that the page stays alive: asked by messages, each answered in its turn.
import { WORKER } from "./built.js"; // made by web/build.py
import { EbnetError } from "./errors.js";

export const isNode = typeof process !== "undefined" && Boolean(process.versions?.node);

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

export class Engine {
  #worker;
  #waiting = new Map();
  #last = 0;
  #ended = null;

  static async start() {
    const engine = new Engine();
    engine.#worker = await startWorker(
      (message) => engine.#hear(message),
      (message) => engine.#fail(new EbnetError("Internal", `the engine stopped: ${message}`)),
    );
    return engine;
  }

  /** Questions without an answer yet. */
  get waiting() {
    return this.#waiting.size;
  }

  ask(ask, rest) {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#last += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.post({ id, ask, ...rest });
    });
  }

  end() {
    this.#worker.end();
    this.#fail(new EbnetError("ArgumentInvalid", "the network is closed"));
  }

  #hear({ id, answer, error }) {
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.rest();
    if (error) reject(new EbnetError(error.code, error.message)); else resolve(answer);
  }

  #fail(error) {
    this.#ended ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }
}
