#include "engine/bytes.h"

#include <algorithm>

namespace ebnet {

namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

// What the readers of a value want.
struct Readers {
  bool any = false, differ = false;
  ByteCode code;

  void add(const ByteCode& wanted) {
    differ |= any && !(code == wanted);
    any = true;
    code = wanted;
  }
  bool agree() const { return any && !differ; }
  // Whether they agreed so far.
  bool refuse() { return agree() && (differ = true); }
};

bool passes_bytes(const Op& op) { return op.kind == OpKind::MaxPool || op.kind == OpKind::Concat; }

std::vector<Readers> readers_of(const Program& program) {
  std::vector<Readers> readers(program.values.size());
  for (std::size_t i = program.ops.size(); i-- > 0;) {
    const Op& op = program.ops[i];
    for (const int v : op.inputs) {
      if (op.int8) {
        readers[z(v)].add(op.code);
      } else if (passes_bytes(op) && readers[i + 1].agree()) {
        readers[z(v)].add(readers[i + 1].code);
      } else {
        readers[z(v)].differ = true;
      }
    }
    if (op.skip >= 0) readers[z(op.skip)].differ = true;
  }
  return readers;
}

// Whether value v is made as bytes: of the image pixels alone are.
bool comes_as_bytes(const Program& program, std::size_t v, const std::vector<Readers>& readers) {
  if (v == 0) return readers[v].code == kPixels;
  const Op& op = program.ops[v - 1];
  if (!passes_bytes(op)) return op.int8;
  return std::all_of(op.inputs.begin(), op.inputs.end(), [&](int input) { return readers[z(input)].agree(); });
}

}  // namespace

void choose_bytes(const Program& program, std::vector<ValuePlan>& values) {
  std::vector<Readers> readers = readers_of(program);
  // What is passed on as bytes must come as bytes; where it does not, nothing before it is kept so either.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (!comes_as_bytes(program, v, readers)) changed |= readers[v].refuse();
      if (v == 0 || readers[v].agree() || !passes_bytes(program.ops[v - 1])) continue;
      for (const int input : program.ops[v - 1].inputs) changed |= readers[z(input)].refuse();
    }
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    values[v].bytes = readers[v].agree();
    values[v].code = readers[v].code;
  }
}

}  // namespace ebnet
