// The worker's side: one network, asked by messages { id, ask, ... }, answered by { id, answer } or { id, error }.
import { Core } from "./core.js";
import { EbnetError } from "./errors.js";
import { fit } from "./pixels.js";

const serve = (send) => {
  let core = null;
  let network = null;
  const asks = {
    load: async ({ module, bytes }) => {
      core = await Core.make(module);
      network = core.open(bytes);
      return network;
    },
    predict: async ({ image, invert }) => {
      const { size } = network.preprocessing;
      return core.run(fit(image, network.preprocessing, invert), 1, size, size);
    },
    run: async ({ images, batch, height, width }) => core.run(images, batch, height, width),
  };
  return async ({ id, ask, ...rest }) => {
    try {
      send({ id, answer: await asks[ask](rest) });
    } catch (fault) {
      const code = fault instanceof EbnetError ? fault.code : "Internal";
      send({ id, error: { code, message: fault.message } });
    }
  };
};

if (typeof self === "undefined") {
  const { parentPort } = require("node:worker_threads");
  parentPort.on("message", serve((message) => parentPort.postMessage(message)));
} else {
  const answer = serve((message) => self.postMessage(message));
  self.onmessage = (event) => answer(event.data);
}
