// One kind of error, with the names that all faces of the engine share.

/** Every fault of a file or a call, by the name it has in Python and C: `TensorMissing`, `InputSizeInvalid`, ... */
export class EbnetError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "EbnetError";
    this.code = code;
  }
}
