// Answers from the network inside the page: nothing is sent anywhere, and once loaded the page needs no network.
import { load } from "./ebnet.js";

// A page that is one file brings the network with it.
const loading = load(globalThis.ebnetNetwork ?? new URL("net.ebn", document.baseURI));
// Once without being asked, so that the first answer shows the engine's time and not the compiler's. What goes wrong is
// told to whoever asks.
loading.then((net) => net.run(new Uint8Array(net.preprocessing.size ** 2 * net.preprocessing.in_channels))).catch(() => {})
  // Files are kept for later only then: the first answer comes first.
  .then(() => globalThis.ebnetNetwork ?? navigator.serviceWorker?.register("offline.js")).catch(() => {});

export const network = async () => {
  const net = await loading;
  return {
    arch: net.network.arch,
    experts: Math.max(1, ...net.layers.map((layer) => layer.experts)),
    classes: net.labels,
    channels: net.preprocessing.in_channels,
    bytes: net.bytes,
    isa: net.isa,
    where: "The network runs in this page: your images go nowhere.",
  };
};

export const classify = async (image, invert) => {
  const net = await loading;
  const answer = await net.predict(image, { invert, top: net.classes });
  const probabilities = new Array(net.classes);
  answer.classes.forEach((index, rank) => { probabilities[index] = answer.probabilities[rank]; });
  return { label: answer.label, classes: net.labels, probabilities, path: answer.experts, milliseconds: answer.milliseconds };
};
