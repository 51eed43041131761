#include "engine/plan.h"

#include <algorithm>

#include "engine/arena.h"
#include "engine/bytes.h"
#include "engine/error.h"
#include "engine/work.h"

namespace ebnet {

namespace {

std::size_t z(int value) { return static_cast<std::size_t>(value); }

std::string size_text(const ValuePlan& value) {
  return std::to_string(value.height) + "x" + std::to_string(value.width);
}

class Planner {
 public:
  Planner(const Model& model, int height, int width, StreamType stream, const Limits& limits, KernelChoice& choice)
      : program_(model.program), model_(model), stream_(stream), limits_(limits), choice_(choice) {
    plan_.height = height;
    plan_.width = width;
    if (height < 1 || width < 1 || height > limits.side || width > limits.side) {
      fail(Error::InputSizeInvalid, "an image of " + std::to_string(height) + "x" + std::to_string(width) +
                                        "; sides are 1 to " + std::to_string(limits.side));
    }
  }

  Plan make() {
    plan_.ops.resize(program_.ops.size());
    plan_.values.resize(program_.values.size());
    plan_.values[0].height = plan_.height;
    plan_.values[0].width = plan_.width;
    plan_.values[0].channels = program_.in_channels;
    for (std::size_t i = 0; i < program_.ops.size(); ++i) size_op(i);
    pair_with_makers();
    choose_types();
    choose_bytes(program_, plan_.values);
    find_lifetimes();
    share_concatenations();
    share_residual_stream();
    share_pointwise();
    place();
    choose_kernels();
    return std::move(plan_);
  }

 private:
  // Spatial sizes, shapes and work of one op.
  void size_op(std::size_t index) {
    const Op& op = program_.ops[index];
    OpPlan& planned = plan_.ops[index];
    const ValuePlan& input = plan_.values[z(op.inputs[0])];
    ValuePlan& output = plan_.values[index + 1];
    output.channels = op.out_channels;
    const std::string where = "op " + std::to_string(index) + " (" + op_kind_name(op.kind) + ")";
    switch (op.kind) {
      case OpKind::Conv:
      case OpKind::Binary:
        planned.conv = op.conv_shape(input.height, input.width);
        if (!planned.conv.valid()) {
          fail(Error::InputSizeInvalid, where + ": a window of " + std::to_string(op.kernel) + " does not fit into " +
                                            size_text(input) + "; use larger images");
        }
        output.height = planned.conv.out_h();
        output.width = planned.conv.out_w();
        planned.macs = static_cast<double>(output.pixels()) * op.out_channels * (op.in_channels / op.groups) *
                       (op.kernel * op.kernel);
        break;
      case OpKind::MaxPool:
      case OpKind::AvgPool:
        planned.pool = op.pool_shape(input.height, input.width);
        output.height = pooled(op, input.height, where);
        output.width = pooled(op, input.width, where);
        break;
      case OpKind::Concat:
        output.height = input.height;
        output.width = input.width;
        planned.copies.assign(op.inputs.size(), true);
        for (const int other : op.inputs) check_same(plan_.values[z(other)], output, where);
        break;
      case OpKind::Sum:
        output.height = input.height;
        output.width = input.width;
        for (const int other : op.inputs) check_same(plan_.values[z(other)], output, where);
        planned.macs = static_cast<double>(output.pixels()) * op.out_channels * static_cast<double>(op.inputs.size());
        break;
      case OpKind::GlobalPool:
        break;
      case OpKind::Linear:
        planned.macs = static_cast<double>(op.in_channels) * op.out_channels;
        break;
    }
    if (op.skip >= 0) check_same(plan_.values[z(op.skip)], output, where);
    planned.work = work_of(op, planned, input, output);
    work_ += planned.work;
    const auto allowed = static_cast<double>(limits_.work_for(model_.file_bytes, pixels()));
    const double row = planned.work / output.height;
    if (work_ > allowed || row > static_cast<double>(limits_.row_work)) {
      fail(Error::PlanTooLarge, where + ": more work for an image of " + size_text(plan_.values[0]) +
                                    " than goes with a file of " + std::to_string(model_.file_bytes) +
                                    " bytes; allow more (limits: work) if you trust the file");
    }
  }

  std::uint64_t pixels() const { return plan_.values[0].pixels(); }

  static int pooled(const Op& op, int in, const std::string& where) {
    const int room = in + 2 * op.pad - op.kernel + (op.ceil_mode ? op.stride - 1 : 0);
    if (room < 0) {
      fail(Error::InputSizeInvalid, where + ": a window of " + std::to_string(op.kernel) + " does not fit into " +
                                        std::to_string(in) + " pixels; use larger images");
    }
    return op.pool_shape(in, in).out_h();
  }

  static void check_same(const ValuePlan& a, const ValuePlan& b, const std::string& where) {
    if (a.height != b.height || a.width != b.width) {
      fail(Error::SpatialMismatch, where + ": maps of " + size_text(a) + " and " + size_text(b) + " do not match");
    }
  }

  // Value v is alive from first_[root] to last_[root] (op indices) of the buffer it lives in.
  void find_lifetimes() {
    const std::size_t count = plan_.values.size();
    first_.resize(count);
    last_.resize(count);
    root_.resize(count);
    within_.assign(count, 0);
    for (std::size_t v = 0; v < count; ++v) {
      root_[v] = v;
      first_[v] = v == 0 ? 0 : static_cast<int>(v) - 1;
      last_[v] = first_[v];
    }
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      const bool reads = op.kind != OpKind::Binary || plan_.ops[i].binarizes_image;  // else its bits are enough
      for (const int v : op.inputs) {
        if (reads) last_[z(v)] = static_cast<int>(i);
      }
      if (op.skip >= 0) last_[z(op.skip)] = static_cast<int>(i);
    }
    // Logits are read after the last op.
    last_.back() = static_cast<int>(program_.ops.size()) - 1;
  }

  // A branch made by a real conv or a pool is written into its slice of the concatenation.
  void share_concatenations() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      if (op.kind != OpKind::Concat) continue;
      const std::size_t whole = i + 1;
      std::size_t channel = 0;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const std::size_t part = z(op.inputs[k]);
        const OpKind maker = part == 0 ? OpKind::Concat : program_.ops[part - 1].kind;
        const bool in_place = maker == OpKind::Conv || maker == OpKind::MaxPool || maker == OpKind::AvgPool;
        const std::size_t width = plan_.values[whole].value_width();
        if (in_place && root_[part] == part && width == plan_.values[part].value_width() && within_reach(part, channel)) {
          join(part, whole, channel * width);
          plan_.ops[i].copies[k] = false;
        }
        channel += z(plan_.values[part].channels);
      }
    }
  }

  // Readers of bytes take four at a time. Those of a slice must not be followed by another slice's, which may be written
  // meanwhile.
  bool within_reach(std::size_t part, std::size_t channel) const {
    return !plan_.values[part].bytes || (channel % kInt8Slack == 0 && z(plan_.values[part].channels) % kInt8Slack == 0);
  }

  // A real 1x1 convolution whose input ends with it writes over that, where the result fills at least half of the room:
  // else the input's room is better given back.
  void share_pointwise() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      if (op.kind != OpKind::Conv || op.int8 || !runs_in_place(plan_.ops[i].conv) || 2 * op.out_channels < op.in_channels) continue;
      const std::size_t input = z(op.inputs[0]);
      const bool ends = root_[input] == input && last_[input] == static_cast<int>(i);
      const bool alone = root_[i + 1] == i + 1 && std::count(root_.begin(), root_.end(), i + 1) == 1;
      if (ends && alone) join(i + 1, input, 0);
    }
  }

  // What one binary unit's epilogue makes and others' alone read is kept in the type of the stream. A narrow value is
  // never seen by a real-valued op, so that none has to convert.
  void choose_types() {
    for (std::size_t v = 1; v + 1 < plan_.values.size(); ++v) {
      const bool made = program_.ops[v - 1].kind == OpKind::Binary && plan_.ops[v - 1].binarizes_for.empty();
      if (made) plan_.values[v].type = stream_;
    }
    for (const Op& op : program_.ops) {
      if (op.kind == OpKind::Binary) continue;
      for (const int v : op.inputs) plan_.values[z(v)].type = StreamType::fp32;
    }
  }

  // A binary unit whose skip ends with it writes over the skip, where both are of one type.
  void share_residual_stream() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      if (op.kind != OpKind::Binary || op.skip <= 0) continue;
      const std::size_t skip = z(op.skip);
      const std::size_t root = root_[skip];
      const bool fits = plan_.values[root].channels == plan_.values[i + 1].channels &&
                        plan_.values[root].type == plan_.values[i + 1].type;
      if (fits && last_[root] == static_cast<int>(i)) join(i + 1, root, 0);
    }
  }

  void join(std::size_t value, std::size_t into, std::size_t within) {
    root_[value] = into;
    within_[value] = within;
    first_[into] = std::min(first_[into], first_[value]);
    last_[into] = std::max(last_[into], last_[value]);
  }

  // A binary op's bits and sums are made as soon as its input is there: for the first binary op that reads another
  // one's result in that one's epilogue, for others in a pass of their own.
  void pair_with_makers() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      if (op.kind != OpKind::Binary) continue;
      OpPlan& planned = plan_.ops[i];
      planned.needs_sums = op.experts > 1 || op.squeeze > 0;
      const int maker = op.inputs[0] - 1;
      if (maker < 0) {
        planned.binarizes_image = true;
      } else if (program_.ops[z(maker)].kind == OpKind::Binary && plan_.ops[z(maker)].emits_for < 0) {
        plan_.ops[z(maker)].emits_for = static_cast<int>(i);
      } else {
        plan_.ops[z(maker)].binarizes_for.push_back(static_cast<int>(i));
      }
    }
  }

  void place() {
    Arena arena;
    std::vector<std::size_t> value_buffer(plan_.values.size());
    for (std::size_t v = 0; v < plan_.values.size(); ++v) {
      if (root_[v] != v) continue;
      const ValuePlan& value = plan_.values[v];
      value_buffer[v] = arena.add(value.pixels() * z(value.channels) * value.value_width() + (value.bytes ? kInt8Slack : 0), first_[v], last_[v]);
    }
    struct Wish {
      std::size_t* offset;
      std::size_t buffer;
    };
    std::vector<Wish> wishes;
    const auto want = [&](std::size_t& offset, std::size_t bytes, int first, int last) {
      wishes.push_back({&offset, arena.add(bytes, first, last)});
    };
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      OpPlan& planned = plan_.ops[i];
      const ValuePlan& input = plan_.values[z(op.inputs[0])];
      const int now = static_cast<int>(i);
      if (op.int8) {
        need_scratch(int8_scratch_bytes(model_.weights[i].int8.conv));
        planned.makes_bytes = !input.bytes;
        if (planned.makes_bytes) want(planned.bytes, input.pixels() * z(input.channels) + kInt8Slack, now, now);
      } else if (op.kind == OpKind::Conv) {
        need_scratch(dense_scratch_bytes(model_.weights[i].conv));
      }
      if (op.kind != OpKind::Binary) continue;
      const int made = planned.binarizes_image ? now : op.inputs[0] - 1;
      planned.bits_words = input.pixels() * z(planned.conv.words_per_pixel());
      want(planned.bits, planned.bits_words * sizeof(std::uint64_t), made, now);
      if (planned.needs_sums) {
        want(planned.sums, z(input.height) * z(input.channels) * sizeof(float), made, now);
        want(planned.mean, z(input.channels) * sizeof(float), now, now);
        want(planned.gate, z(op.experts) * sizeof(float), now, now);
        want(planned.hidden, z(op.squeeze) * sizeof(float), now, now);
        want(planned.scale, z(op.out_channels) * sizeof(float), now, now);
      }
      laid_out_bytes_ += laid_out_bytes(op, planned.conv);
      need_scratch(model_.weights[i].binary.experts.staging_bytes());
    }
    plan_.arena_bytes = arena.place();
    check_memory();
    for (const Wish& wish : wishes) *wish.offset = arena.offset(wish.buffer);
    for (std::size_t v = 0; v < plan_.values.size(); ++v) locate(v, arena, value_buffer);
  }

  // Once the layers are known to be of a sane size: kernels may be timed for it.
  void choose_kernels() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      if (program_.ops[i].kind != OpKind::Binary) continue;
      OpPlan& planned = plan_.ops[i];
      planned.kernel = &choice_.choose(planned.conv);
      planned.experts = &model_.weights[i].binary.experts.layout(*planned.kernel);
      need_scratch(planned.kernel->scratch_bytes(planned.conv));
    }
    check_memory();
  }

  void check_memory() const {
    const std::uint64_t allowed = limits_.memory_for(model_.file_bytes, pixels());
    if (plan_.arena_bytes + plan_.scratch_bytes + laid_out_bytes_ > allowed) {
      fail(Error::PlanTooLarge, "an image of " + size_text(plan_.values[0]) + " needs " +
                                    std::to_string(plan_.arena_bytes) + " bytes of activations, " +
                                    std::to_string(plan_.scratch_bytes) + " of scratch and " +
                                    std::to_string(laid_out_bytes_) + " for experts, together at most " +
                                    std::to_string(allowed) + "; allow more (limits: memory) if you trust the file");
    }
  }

  void need_scratch(std::size_t bytes) { plan_.scratch_bytes = std::max(plan_.scratch_bytes, whole_lines(bytes)); }

  // A value's place within its root's buffer; roots may themselves lie within another.
  void locate(std::size_t value, const Arena& arena, const std::vector<std::size_t>& value_buffer) {
    std::size_t root = value;
    std::size_t within = 0;
    while (root_[root] != root) {
      within += within_[root];
      root = root_[root];
    }
    plan_.values[value].offset = arena.offset(value_buffer[root]) + within;
    plan_.values[value].stride = z(plan_.values[root].channels);
  }

  const Program& program_;
  const Model& model_;
  StreamType stream_;
  const Limits& limits_;
  KernelChoice& choice_;
  Plan plan_;
  std::vector<int> first_, last_;
  std::vector<std::size_t> root_, within_;
  double work_ = 0;
  std::size_t laid_out_bytes_ = 0;
};

}  // namespace

Plan make_plan(const Model& model, int height, int width, StreamType stream, const Limits& limits,
               KernelChoice& choice) {
  return Planner(model, height, width, stream, limits, choice).make();
}

}  // namespace ebnet
