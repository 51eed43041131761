/** Every fault of a file or a call, by the name it has in Python and C: `TensorMissing`, `InputSizeInvalid`, ... */
export class EbnetError extends Error {
  readonly name: "EbnetError";
  readonly code: string;
}

/** A binary layer and the number of experts it chooses from. */
export interface Layer {
  name: string;
  experts: number;
}

export interface Answer {
  /** The most probable class. */
  label: string;
  /** The most probable classes, best first: their numbers, names and probabilities. */
  classes: number[];
  labels: string[];
  probabilities: number[];
  /** The expert that every binary layer chose for this image, in forward order. */
  experts: (Layer & { chosen: number })[];
  /** Of the engine alone: decoding and resizing are left out. */
  milliseconds: number;
  logits: Float32Array;
}

export interface Run {
  /** [batch][classes] */
  logits: Float32Array;
  /** [layer][batch] */
  experts: number[];
  milliseconds: number;
}

/** Bytes of an image, 1, 3 or 4 a pixel, row by row. An ImageData is one. */
export interface Pixels {
  data: ArrayLike<number>;
  width: number;
  height: number;
}

/** A canvas, an element of a page, a bitmap, an image file, or pixels; Node takes pixels only. */
export type Image =
  | Pixels
  | HTMLCanvasElement
  | OffscreenCanvas
  | HTMLImageElement
  | HTMLVideoElement
  | ImageBitmap
  | Blob;

export interface Network {
  readonly classes: number;
  readonly labels: string[];
  readonly layers: Layer[];
  readonly preprocessing: {
    size: number;
    resize: number;
    crop: number;
    mean: number[];
    std: number[];
    in_channels: number;
  };
  /** The settings of the network that was packed. */
  readonly network: { arch?: string; [setting: string]: unknown };
  /** The instruction set whose kernels run. */
  readonly isa: string;
  /** Of the file. */
  readonly bytes: number;
  /** Workers, each with the whole network: they share the images of a batch, or several `predict` at once. */
  readonly threads: number;

  /** What an image shows. `invert` swaps dark and light first; `top` is how many classes are told. */
  predict(image: Image, options?: { top?: number; invert?: boolean }): Promise<Answer>;
  /** Float32Array: [batch][channels][height][width], normalised; Uint8Array: [batch][height][width][channels]. */
  run(
    images: Float32Array | Uint8Array | Uint8ClampedArray,
    options?: { batch?: number; height?: number; width?: number },
  ): Promise<Run>;
  /** Ends the workers. */
  close(): void;
}

/** Reads and verifies a packed network: from an address, in Node also a path, or from its bytes. */
export function load(
  source: string | URL | ArrayBuffer | ArrayBufferView | Blob,
  options?: { threads?: number },
): Promise<Network>;
