#include "engine/program.h"

#include <cmath>

#include "engine/error.h"
#include "engine/fields.h"
#include "engine/text.h"

namespace ebnet {

namespace {

constexpr int kMostInputs = 16;  // of a concatenation or a sum
constexpr std::size_t kLongestName = 256;
constexpr double kLeastStep = 1e-30;

struct KindName {
  OpKind kind;
  const char* name;
};
constexpr KindName kKinds[] = {
    {OpKind::Conv, "conv"},     {OpKind::MaxPool, "maxpool"}, {OpKind::AvgPool, "avgpool"},
    {OpKind::Concat, "concat"}, {OpKind::Sum, "sum"},         {OpKind::Binary, "binary"},
    {OpKind::GlobalPool, "global_pool"}, {OpKind::Linear, "linear"},
};

OpKind kind_of(const json::Value& value, const std::string& where) {
  const json::Value* found = value.kind == json::Kind::Object ? value.find("op") : nullptr;
  if (found == nullptr) fail(Error::FieldMissing, where + ": field 'op' is missing");
  if (found->kind != json::Kind::String) fail(Error::FieldTypeWrong, where + ": field 'op' is not a string");
  for (const KindName& entry : kKinds) {
    if (found->text == entry.name) return entry.kind;
  }
  fail(Error::OpUnknown, where + ": unknown op " + quoted(found->text));
}

// Fields by op, so that a field where it means nothing is an error.
Fields fields_of(OpKind kind, const json::Value& value, const std::string& where) {
  switch (kind) {
    case OpKind::Conv:
      return {value, where, {"op", "name", "in", "out", "kernel", "stride", "pad", "act", "int8"}};
    case OpKind::MaxPool:
    case OpKind::AvgPool:
      return {value, where, {"op", "in", "kernel", "stride", "pad", "ceil"}};
    case OpKind::Concat:
    case OpKind::GlobalPool:
      return {value, where, {"op", "in"}};
    case OpKind::Sum:
      return {value, where, {"op", "in", "factors"}};
    case OpKind::Binary:
      return {value,
              where,
              {"op", "name", "in", "skip", "out", "kernel", "stride", "pad", "dilation", "groups", "experts", "squeeze",
               "act", "shift", "after", "act_last", "expert_scales"}};
    case OpKind::Linear:
      return {value, where, {"op", "name", "in", "out", "act", "int8"}};
  }
  fail(Error::Internal, "op kind");
}

class Reader {
 public:
  Reader(const Limits& limits, int in_channels, int version) : limits_(limits), version_(version) {
    program_.in_channels = in_channels;
    program_.values.push_back({true, in_channels});
    used_.push_back(false);
  }

  void add(const json::Value& value, int index) {
    const std::string place = "op " + std::to_string(index);
    Op op;
    op.kind = kind_of(value, place);
    const std::string where = place + " (" + op_kind_name(op.kind) + ")";
    const Fields fields = fields_of(op.kind, value, where);
    read_inputs(op, fields);
    read_window(op, fields);
    op.activation = static_cast<Activation>(fields.choice_or("act", {"none", "relu", "prelu"}, 0));
    const bool has_tensors = op.kind == OpKind::Conv || op.kind == OpKind::Binary || op.kind == OpKind::Linear;
    if (has_tensors) {
      op.name = fields.text("name");
      if (op.name.empty() || op.name.size() > kLongestName) {
        fail(Error::FieldOutOfRange, where + ": a name has 1 to " + std::to_string(kLongestName) + " bytes");
      }
      require_plain(op.name, kLongestName, where + ": the name");
      op.out_channels = fields.integer("out", 1, limits_.channels);
    } else {
      op.out_channels = op.in_channels;
    }
    if (op.kind == OpKind::Binary) read_binary(op, fields);
    if (op.kind == OpKind::Sum) read_sum(op, fields);
    if (fields.has("int8")) read_int8(op, fields);
    const bool makes_vector = op.kind == OpKind::GlobalPool || op.kind == OpKind::Linear;
    program_.values.push_back({!makes_vector, op.out_channels});
    used_.push_back(false);
    program_.ops.push_back(std::move(op));
  }

  Program finish() {
    if (program_.ops.empty()) fail(Error::ProgramEmpty, "the program has no ops");
    for (std::size_t value = 0; value + 1 < used_.size(); ++value) {
      if (!used_[value]) fail(Error::ValueUnused, "value " + std::to_string(value) + " is used by no op");
    }
    if (program_.ops.back().kind != OpKind::Linear) {
      fail(Error::ProgramResultWrong, "the last op is " + std::string(op_kind_name(program_.ops.back().kind)) +
                                          ", expected linear (the classifier)");
    }
    return std::move(program_);
  }

 private:
  const ValueType& use(const json::Value& reference, bool map, const std::string& where) {
    const int last = static_cast<int>(program_.values.size()) - 1;
    if (reference.kind != json::Kind::Number || !reference.whole || reference.number < 0 || reference.number > last) {
      fail(Error::ValueReferenceInvalid, where + ": refers to no earlier value (0 to " + std::to_string(last) + ")");
    }
    const auto id = static_cast<std::size_t>(reference.number);
    if (program_.values[id].is_map != map) {
      fail(Error::ValueKindWrong, where + ": value " + std::to_string(id) + " is " + (map ? "a vector" : "a map") +
                                      ", expected " + (map ? "a map" : "a vector"));
    }
    used_[id] = true;
    return program_.values[id];
  }

  void read_inputs(Op& op, const Fields& fields) {
    const json::Value& list = fields.list("in");
    const bool several = op.kind == OpKind::Concat || op.kind == OpKind::Sum;
    const std::size_t count = list.items.size();
    if (several ? (count < 1 || count > kMostInputs) : count != 1) {
      fail(Error::ValueReferenceInvalid, fields.where() + ": " + std::to_string(count) + " inputs");
    }
    for (const json::Value& item : list.items) {
      const int channels = use(item, op.kind != OpKind::Linear, fields.where()).channels;
      if (op.kind != OpKind::Sum) {
        op.in_channels += channels;
      } else if (op.inputs.empty()) {
        op.in_channels = channels;
      } else if (channels != op.in_channels) {
        fail(Error::ChannelsMismatch, fields.where() + ": a sum of " + std::to_string(op.in_channels) + " and " +
                                          std::to_string(channels) + " channels");
      }
      op.inputs.push_back(static_cast<int>(item.number));
    }
    if (op.in_channels > limits_.channels) {
      fail(Error::FieldOutOfRange, fields.where() + ": " + std::to_string(op.in_channels) + " channels");
    }
  }

  void read_window(Op& op, const Fields& fields) {
    const bool pool = op.kind == OpKind::MaxPool || op.kind == OpKind::AvgPool;
    if (!pool && op.kind != OpKind::Conv && op.kind != OpKind::Binary) return;
    op.kernel = fields.integer("kernel", 1, limits_.kernel);
    op.stride = fields.integer_or("stride", 1, limits_.stride, 1);
    op.pad = fields.integer_or("pad", 0, limits_.kernel * limits_.dilation, 0);
    op.dilation = fields.integer_or("dilation", 1, limits_.dilation, 1);
    op.ceil_mode = fields.boolean_or("ceil", false);
    // A window must touch the image wherever it stands: padding stays below the window's extent (pools: half of it).
    const int extent = op.dilation * (op.kernel - 1) + 1;
    if (pool ? 2 * op.pad > op.kernel : op.pad >= extent) {
      fail(Error::WindowInvalid,
           fields.where() + ": a window of " + std::to_string(extent) + " with padding " + std::to_string(op.pad));
    }
  }

  void read_binary(Op& op, const Fields& fields) {
    op.groups = fields.integer_or("groups", 1, limits_.channels, 1);
    if (op.in_channels % op.groups != 0 || op.out_channels % op.groups != 0) {
      fail(Error::GroupsInvalid, fields.where() + ": " + std::to_string(op.groups) + " groups do not divide " +
                                     std::to_string(op.in_channels) + " and " + std::to_string(op.out_channels) +
                                     " channels");
    }
    op.experts = fields.integer_or("experts", 1, limits_.experts, 1);
    op.squeeze = fields.integer_or("squeeze", 0, limits_.channels, 0);
    read_unit(op, fields);
    if (!fields.has("skip")) return;
    const ValueType& skip = use(fields.required("skip"), true, fields.where());
    op.skip = static_cast<int>(fields.required("skip").number);
    if (skip.channels != op.out_channels) {
      fail(Error::ChannelsMismatch, fields.where() + ": the skip has " + std::to_string(skip.channels) +
                                        " channels, the result " + std::to_string(op.out_channels));
    }
  }

  void read_sum(Op& op, const Fields& fields) {
    if (version_ < kSumsVersion) {
      fail(Error::OpUnknown, fields.where() + ": unknown to version " + std::to_string(version_) + " of the format");
    }
    for (const double factor : fields.numbers("factors")) {
      op.factors.push_back(static_cast<float>(factor));
      if (!std::isfinite(op.factors.back())) fail(Error::FieldOutOfRange, fields.where() + ": a factor is no float");
    }
    if (op.factors.size() != op.inputs.size()) {
      fail(Error::FieldOutOfRange, fields.where() + ": " + std::to_string(op.factors.size()) + " factors of " +
                                       std::to_string(op.inputs.size()) + " inputs");
    }
  }

  void read_unit(Op& op, const Fields& fields) {
    for (const char* name : {"shift", "after", "act_last", "expert_scales"}) {
      if (version_ < kUnitsVersion && fields.has(name)) {
        fail(Error::FieldUnknown, fields.where() + ": field '" + name + "' is unknown to version " +
                                      std::to_string(version_) + " of the format");
      }
    }
    op.shift = fields.boolean_or("shift", false);
    op.after = fields.boolean_or("after", false);
    op.act_last = fields.boolean_or("act_last", false);
    op.expert_scales = fields.boolean_or("expert_scales", false);
    if (op.expert_scales && op.experts == 1) {
      fail(Error::FieldOutOfRange, fields.where() + ": expert_scales with one expert");
    }
  }

  // "pixels", or [step, zero].
  void read_int8(Op& op, const Fields& fields) {
    const std::string where = fields.where() + ": field 'int8'";
    if (version_ < kInt8Version) fail(Error::FieldUnknown, where + " is unknown to version 1 of the format");
    op.int8 = true;
    const json::Value& value = fields.required("int8");
    if (value.kind == json::Kind::String) {
      if (value.text != "pixels") fail(Error::FieldChoiceUnknown, where + ": " + quoted(value.text));
      if (op.inputs[0] != 0) fail(Error::ValueReferenceInvalid, where + ": only the image has pixels");
      op.code = kPixels;
    } else {
      const std::vector<double> code = fields.numbers("int8");
      if (code.size() != 2) fail(Error::FieldTypeWrong, where + ": expected \"pixels\" or [step, zero]");
      if (!(code[0] >= kLeastStep && code[0] <= 1 / kLeastStep)) {
        fail(Error::FieldOutOfRange, where + ": a step is a positive number that has an inverse");
      }
      op.code.step = static_cast<float>(code[0]);
      if (!(code[1] >= 0 && code[1] <= 255) || code[1] != std::floor(code[1])) {
        fail(Error::FieldOutOfRange, where + ": a zero is a whole number of 0 to 255");
      }
      op.code.zero = static_cast<int>(code[1]);
    }
    if (op.in_channels > kMostInt8Inputs / (op.kernel * op.kernel)) {
      fail(Error::FieldOutOfRange, where + ": more than " + std::to_string(kMostInt8Inputs) + " inputs of one sum");
    }
  }

  const Limits& limits_;
  const int version_;
  Program program_;
  std::vector<bool> used_;
};

}  // namespace

const char* op_kind_name(OpKind kind) {
  for (const KindName& entry : kKinds) {
    if (entry.kind == kind) return entry.name;
  }
  return "?";
}

ConvShape Op::conv_shape(int in_h, int in_w) const {
  ConvShape shape;
  shape.in_channels = in_channels;
  shape.out_channels = out_channels;
  shape.groups = groups;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.stride_h = shape.stride_w = stride;
  shape.pad_h = shape.pad_w = pad;
  shape.dilation_h = shape.dilation_w = dilation;
  shape.in_h = in_h;
  shape.in_w = in_w;
  return shape;
}

ConvShape Op::smallest_conv_shape() const {
  const int side = dilation * (kernel - 1) + 1;
  return conv_shape(side, side);
}

PoolShape Op::pool_shape(int in_h, int in_w) const {
  return {in_channels, kernel, stride, pad, in_h, in_w, ceil_mode};
}

int Program::binary_layers() const {
  int count = 0;
  for (const Op& op : ops) count += op.kind == OpKind::Binary ? 1 : 0;
  return count;
}

Program read_program(const json::Value& text, int in_channels, int version, const Limits& limits) {
  if (text.kind != json::Kind::Array) fail(Error::FieldTypeWrong, "program: expected a list of ops");
  if (text.items.size() > static_cast<std::size_t>(limits.ops)) {
    fail(Error::ProgramTooLong,
         "the program has " + std::to_string(text.items.size()) + " ops, more than " + std::to_string(limits.ops));
  }
  Reader reader(limits, in_channels, version);
  int index = 0;
  for (const json::Value& item : text.items) reader.add(item, index++);
  return reader.finish();
}

}  // namespace ebnet
