// From pixels of any size to the network's input, number for number as Python does it with Pillow: the central part,
// resized by Pillow's antialiased bilinear filter in 22-bit fixed point, transparent parts on black, then grey.

const PRECISION = 22;

/** For each of `size` outputs along one axis: the first input it sees, and the integer weights of those from there on. */
const filters = (inputs, from, to, size) => {
  const scale = Math.fround(Math.fround(to) - Math.fround(from)) / size; // Pillow keeps a box in single precision
  const support = Math.max(scale, 1);
  return Array.from({ length: size }, (_, i) => {
    const centre = Math.fround(from) + (i + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - support + 0.5), 0);
    const last = Math.min(Math.trunc(centre + support + 0.5), inputs);
    const weights = Array.from({ length: last - first }, (_, k) => {
      return Math.max(1 - Math.abs((k + first - centre + 0.5) * (1 / support)), 0);
    });
    const sum = weights.reduce((a, b) => a + b, 0);
    return { first, weights: Int32Array.from(weights, (w) => Math.trunc(0.5 + (w / sum) * 2 ** PRECISION)) };
  });
};

/** Along rows: an image [height][width][4] becomes [height][axis.length][4]. */
const alongRows = (pixels, width, height, axis) => {
  return pass(pixels, axis, height, { step: 4, line: 4 * width }, { step: 4, line: 4 * axis.length });
};

/** Along columns: an image [height][width][4] becomes [axis.length][width][4]. */
const alongColumns = (pixels, width, axis) => pass(pixels, axis, width, { step: 4 * width, line: 4 }, { step: 4 * width, line: 4 });

/** Filters `lines` rows or columns; steps from pixel to pixel and from line to line, of what is read and written. */
const pass = (pixels, axis, lines, read, write) => {
  const out = new Uint8Array(lines * axis.length * 4);
  for (let line = 0; line < lines; line += 1) {
    for (let i = 0; i < axis.length; i += 1) {
      const { first, weights } = axis[i];
      for (let c = 0; c < 4; c += 1) {
        let sum = 1 << (PRECISION - 1);
        let at = line * read.line + first * read.step + c;
        for (let k = 0; k < weights.length; k += 1, at += read.step) sum += pixels[at] * weights[k];
        out[line * write.line + i * write.step + c] = Math.min(Math.max(sum >> PRECISION, 0), 255);
      }
    }
  }
  return out;
};

/** RGBA pixels within a box, resized to size x size in two passes, each rounded to bytes. */
export const resize = (pixels, width, height, [left, top, right, bottom], size) => {
  const across = filters(width, left, right, size);
  const down = filters(height, top, bottom, size);
  const sameWidth = width === size && left === 0 && right === size;
  const sameHeight = height === size && top === 0 && bottom === size;
  // Rows first, but for images so tall that Pillow (from version 13 on) starts with columns.
  if (!sameHeight && height - size > Math.max(0, 2 * (width - size))) {
    const short = alongColumns(pixels, width, down);
    return sameWidth ? short : alongRows(short, width, size, across);
  }
  if (sameWidth) return sameHeight ? pixels : alongColumns(pixels, width, down);
  if (sameHeight) return alongRows(pixels, width, height, across);
  // Only rows that the second pass will see.
  const [begin, last] = [down[0].first, down[size - 1]];
  const rows = last.first + last.weights.length - begin;
  const narrow = alongRows(pixels.subarray(4 * width * begin), width, rows, across);
  return alongColumns(narrow, size, down.map(({ first, weights }) => ({ first: first - begin, weights })));
};

const isOpaque = (pixels) => {
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i] !== 255) return false;
  return true;
};

// Pillow's a * b / 255 and its inverse.
const product = (a, b) => {
  const sum = a * b + 128;
  return ((sum >> 8) + sum) >> 8;
};
const premultiplied = (pixels) => {
  const out = Uint8Array.from(pixels);
  for (let i = 0; i < out.length; i += 4) for (let c = 0; c < 3; c += 1) out[i + c] = product(out[i + c], out[i + 3]);
  return out;
};
const straight = (pixels) => {
  const out = Uint8Array.from(pixels);
  for (let i = 0; i < out.length; i += 4) {
    const alpha = out[i + 3];
    if (alpha === 0 || alpha === 255) continue;
    for (let c = 0; c < 3; c += 1) out[i + c] = Math.min(Math.trunc((255 * out[i + c]) / alpha), 255);
  }
  return out;
};
const onBlack = (value, alpha) => {
  const sum = value * alpha * 128 + (128 << 7);
  return (((sum >> 8) + sum) >> 8) >> 7;
};

/**
 * The network's input of an image: bytes [size][size][channels].
 * @param {{ data: ArrayLike<number>, width: number, height: number }} image RGBA
 * @param {{ size: number, resize: number, crop: number, in_channels: number }} how the file's preprocessing
 */
export const fit = ({ data, width, height }, how, invert = false) => {
  const { size, in_channels: channels } = how;
  const side = Math.min(width, height) * (how.crop / how.resize);
  const [left, top] = [(width - side) / 2, (height - side) / 2];
  const box = [left, top, left + side, top + side];
  const opaque = isOpaque(data);
  let small = data;
  if (width !== size || height !== size || side !== size) {
    small = opaque ? resize(data, width, height, box, size) : straight(resize(premultiplied(data), width, height, box, size));
  }
  const out = new Uint8Array(size * size * channels);
  for (let i = 0; i < size * size; i += 1) {
    let [r, g, b, a] = [small[4 * i], small[4 * i + 1], small[4 * i + 2], small[4 * i + 3]];
    if (channels !== 4 && !opaque) [r, g, b] = [onBlack(r, a), onBlack(g, a), onBlack(b, a)];
    if (channels === 1) out[i] = (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
    else out.set([r, g, b, a].slice(0, channels), i * channels);
  }
  return invert ? out.map((value) => 255 - value) : out;
};
