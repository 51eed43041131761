// Those who run in a browser or in Node: each gives run(image) -> logits for one normalised image [3][side][side].
// `read(name)` brings a file of the folder that web.py wrote, `module(name)` a package.

const SIDE = 224;

const ebnet = async ({ read, module }) => {
  const { load } = await module("ebnet");
  const net = await load(await read("net.ebn"));
  return async (image) => (await net.run(image)).logits;
};

const onnxruntime = (file) => async ({ read, module, wasmFolder }) => {
  const ort = await module("onnxruntime-web");
  ort.env.wasm.numThreads = 1;
  if (wasmFolder) ort.env.wasm.wasmPaths = wasmFolder;
  const session = await ort.InferenceSession.create(await read(file), { executionProviders: ["wasm"] });
  return async (image) => (await session.run({ images: new ort.Tensor("float32", image, [1, 3, SIDE, SIDE]) }))[session.outputNames[0]].data;
};

const tensorflow = async ({ read, module, tfjsFolder }) => {
  const tf = await module("@tensorflow/tfjs-core");
  const backend = await module("@tensorflow/tfjs-backend-wasm");
  backend.setThreadsCount(1);
  backend.setWasmPaths(tfjsFolder);
  await tf.setBackend("wasm");
  await tf.ready();
  const layers = JSON.parse(new TextDecoder().decode(await read("layers.json")));
  const bytes = await read("weights.bin");
  const numbers = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const weight = ({ shape, at }) => tf.tensor(numbers.slice(at, at + shape.reduce((a, b) => a * b)), shape);
  for (const layer of layers) layer.weights = layer.weights.map(weight);
  const padded = (x, pad, value) => (pad ? tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]], value) : x);
  const make = {
    conv: ({ weights: [filter, bias], stride, pad, relu }, x) => tf.fused.conv2d({
      x, filter, bias, strides: stride, pad: pad ? [[0, 0], [pad, pad], [pad, pad], [0, 0]] : "valid", activation: relu ? "relu" : "linear",
    }),
    maxPool: ({ size, stride, pad }, x) => tf.maxPool(padded(x, pad, 0), size, stride, "valid"), // after a ReLU
    add: ({ relu }, a, b) => (relu ? tf.relu(tf.add(a, b)) : tf.add(a, b)),
    mean: (layer, x) => tf.mean(x, [1, 2]),
    linear: ({ weights: [filter, bias] }, x) => tf.add(tf.matMul(x, filter), bias),
  };
  return async (image) => {
    const logits = tf.tidy(() => {
      const values = [tf.transpose(tf.tensor(image, [1, 3, SIDE, SIDE]), [0, 2, 3, 1])];
      for (const layer of layers) values.push(make[layer.kind](layer, ...layer.inputs.map((i) => values[i])));
      return values.at(-1);
    });
    const data = await logits.data();
    logits.dispose();
    return data;
  };
};

const PEERS = {
  ebnet,
  "onnxruntime-web fp32": onnxruntime("fp32.onnx"),
  "onnxruntime-web int8": onnxruntime("int8.onnx"),
  "tfjs-backend-wasm fp32": tensorflow,
};

/** Everybody made ready and asked about every image: { runs, said: { name: [logits] }, missing: { name: reason } }. */
export const prepare = async (host) => {
  const bytes = await host.read("images.bin");
  const numbers = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const size = 3 * SIDE * SIDE;
  const images = Array.from({ length: numbers.length / size }, (_, i) => numbers.slice(i * size, (i + 1) * size));
  const [runs, said, missing] = [{}, {}, {}];
  for (const [name, make] of Object.entries(PEERS)) {
    try {
      const run = await make(host);
      said[name] = [];
      for (const image of images) said[name].push(Array.from(await run(image)));
      runs[name] = () => run(images[0]);
    } catch (fault) {
      delete said[name];
      missing[name] = String(fault.message ?? fault);
    }
  }
  return { runs, said, missing };
};

/** One round: everybody once, in turn; milliseconds by name. */
export const round = async (runs) => {
  const times = {};
  for (const [name, run] of Object.entries(runs)) {
    const begin = performance.now();
    await run();
    times[name] = performance.now() - begin;
  }
  return times;
};
