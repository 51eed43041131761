#include "engine/model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "engine/ahead.h"
#include "engine/error.h"
#include "engine/fields.h"
#include "engine/json.h"
#include "engine/safetensors.h"
#include "engine/text.h"

namespace ebnet {

namespace {

constexpr const char* kFormat = "ebnet";
constexpr const char* kVersions[] = {"1", "2", "3", "4"};

constexpr std::size_t kLongestLabel = 256;  // bytes
constexpr int kLargestResize = 1 << 15;     // only its share in the crop is ever used
// A real convolution with as many stays in half precision where the file has it so.
constexpr std::uint64_t kManyWeights = 1 << 14;

std::uint64_t u(int value) { return static_cast<std::uint64_t>(value); }

Preprocessing read_preprocessing(const json::Value& text, const Limits& limits) {
  const Fields fields(text, "preprocessing", {"size", "resize", "crop", "mean", "std", "in_channels"});
  Preprocessing result;
  result.size = fields.integer("size", 1, limits.trained_side);
  result.resize = fields.integer("resize", 1, kLargestResize);
  result.crop = fields.integer("crop", 1, kLargestResize);
  if (result.crop > result.resize) fail(Error::PreprocessingInvalid, "preprocessing: the crop is larger than resize");
  const int channels = fields.integer("in_channels", 1, limits.channels);
  for (const double value : fields.numbers("mean")) result.mean.push_back(static_cast<float>(value));
  for (const double value : fields.numbers("std")) result.std.push_back(static_cast<float>(value));
  if (result.mean.size() != u(channels) || result.std.size() != u(channels)) {
    fail(Error::PreprocessingInvalid,
         "preprocessing: mean and std need one value for each of the " + std::to_string(channels) + " input channels");
  }
  for (const float value : result.mean) {
    if (!std::isfinite(value)) fail(Error::PreprocessingInvalid, "preprocessing: a mean is not finite");
  }
  for (const float value : result.std) {
    if (!std::isnormal(value) || value < 0) fail(Error::PreprocessingInvalid, "preprocessing: a std is not positive");
  }
  return result;
}

std::vector<std::string> read_labels(const json::Value& text) {
  if (text.kind != json::Kind::Array) fail(Error::FieldTypeWrong, "labels: expected a list");
  std::vector<std::string> labels;
  for (const json::Value& item : text.items) {
    if (item.kind != json::Kind::String) fail(Error::FieldTypeWrong, "labels: expected a list of strings");
    require_plain(item.text, kLongestLabel, "label " + std::to_string(labels.size()));
    labels.push_back(item.text);
  }
  return labels;
}

// [2, channels]: scale, then shift.
void split_norm(const std::vector<float>& norm, std::vector<float>& scale, std::vector<float>& shift) {
  const auto half = norm.begin() + static_cast<std::ptrdiff_t>(norm.size() / 2);
  scale.assign(norm.begin(), half);
  shift.assign(half, norm.end());
}

class WeightReader {
 public:
  WeightReader(const std::shared_ptr<const Source>& source, Safetensors& file, const Preprocessing& preprocessing)
      : source_(source), file_(file), preprocessing_(preprocessing) {}

  OpWeights read(const Op& op) {
    OpWeights weights;
    if (op.int8) {
      weights.int8 = int8(op);
      return weights;
    }
    if (op.kind == OpKind::Conv) weights.conv = conv(op);
    if (op.kind == OpKind::Binary) weights.binary = binary(op);
    if (op.kind == OpKind::Linear) weights.linear = linear(op);
    return weights;
  }

 private:
  std::vector<float> slope(const Op& op) {
    if (op.activation != Activation::prelu) return {};
    return file_.take_reals(op.name + ".slope", {u(op.out_channels)});
  }

  Matrix matrix(const std::string& name, const Shape& shape) {
    Matrix result;
    if (file_.has_halves(name)) {
      result.halves = file_.take_halves(name, shape);
    } else {
      result.reals = file_.take_reals(name, shape);
    }
    return result;
  }

  DenseConv conv(const Op& op) {
    const std::string name = op.name + ".weight";
    const Shape extents = {u(op.out_channels), u(op.in_channels), u(op.kernel), u(op.kernel)};
    const bool halves = file_.has_halves(name) && extents[0] * extents[1] * extents[2] * extents[3] >= kManyWeights;
    const auto half = halves ? file_.take_halves(name, extents) : std::vector<Half>{};
    const auto weight = halves ? std::vector<float>{} : file_.take_reals(name, extents);
    std::vector<float> scale, shift;
    split_norm(file_.take_reals(op.name + ".norm", {2, u(op.out_channels)}), scale, shift);
    const auto slopes = slope(op);
    const auto make = [&](const auto* weights) {
      return make_dense_conv(op.smallest_conv_shape(), weights, scale.data(), shift.data(), op.activation,
                             slopes.empty() ? nullptr : slopes.data());
    };
    return halves ? make(half.data()) : make(weight.data());
  }

  Int8Weights int8(const Op& op) {
    Int8Weights weights;
    std::vector<std::uint8_t> zeros;
    for (int c = 0; c < op.in_channels; ++c) {
      const bool pixels = op.code == kPixels;
      const float zero = pixels ? 255.0f * preprocessing_.mean[u(c)] : static_cast<float>(op.code.zero);
      weights.zero.push_back(zero);
      weights.inverse.push_back(pixels ? 255.0f * preprocessing_.std[u(c)] : 1.0f / op.code.step);
      zeros.push_back(static_cast<std::uint8_t>(std::nearbyint(std::clamp(zero, 0.0f, 255.0f))));
    }
    const bool is_conv = op.kind == OpKind::Conv;
    const Shape extents = is_conv ? Shape{u(op.out_channels), u(op.in_channels), u(op.kernel), u(op.kernel)}
                                  : Shape{u(op.out_channels), u(op.in_channels)};
    const auto weight = file_.take_int8(op.name + ".weight", extents, kLargestInt8Weight);
    std::vector<float> scale, shift;
    if (is_conv) {
      split_norm(file_.take_reals(op.name + ".norm", {2, u(op.out_channels)}), scale, shift);
    } else {
      scale = file_.take_reals(op.name + ".scale", {u(op.out_channels)});
      shift = file_.take_reals(op.name + ".bias", {u(op.out_channels)});
    }
    const float unit = op.code.step / kLargestInt8Weight;
    for (float& value : scale) {
      value *= unit;
      if (!std::isfinite(value)) fail(Error::TensorOutOfRange, "op " + quoted(op.name) + ": a scale times the step is infinite");
    }
    const auto slopes = slope(op);
    weights.conv = make_int8_conv(op.smallest_conv_shape(), weight.data(), zeros.data(), scale.data(), shift.data(),
                                  op.activation, slopes.empty() ? nullptr : slopes.data());
    return weights;
  }

  LinearWeights linear(const Op& op) {
    LinearWeights weights;
    weights.weight = matrix(op.name + ".weight", {u(op.out_channels), u(op.in_channels)});
    weights.bias = file_.take_reals(op.name + ".bias", {u(op.out_channels)});
    weights.slope = slope(op);
    return weights;
  }

  BinaryWeights binary(const Op& op) {
    BinaryWeights weights;
    const ConvShape shape = op.smallest_conv_shape();
    split_norm(file_.take_reals(op.name + ".norm", {2, u(op.in_channels)}), weights.norm_scale, weights.norm_shift);
    const Shape per_channel = {u(op.out_channels)};
    weights.scale = file_.take_reals(op.name + ".scale",
                                     op.expert_scales ? Shape{u(op.experts), u(op.out_channels)} : per_channel);
    if (op.shift) weights.shift = file_.take_reals(op.name + ".shift", per_channel);
    if (op.after) weights.after = file_.take_reals(op.name + ".after", per_channel);
    if (op.activation == Activation::relu) {
      weights.slope.assign(u(op.out_channels), 0.0f);
    } else {
      weights.slope = slope(op);
    }
    if (op.experts > 1) {
      weights.gate_weight = matrix(op.name + ".gate.weight", {u(op.experts), u(op.in_channels)});
      weights.gate_bias = file_.take_reals(op.name + ".gate.bias", {u(op.experts)});
    }
    if (op.squeeze > 0) {
      weights.squeeze = matrix(op.name + ".squeeze", {u(op.squeeze), u(op.in_channels)});
      weights.excite = matrix(op.name + ".excite", {u(op.out_channels), u(op.squeeze)});
    }
    const std::string bits = op.name + ".bits";
    const std::uint64_t begin =
        file_.take_bytes(bits, {u(op.experts), u(op.out_channels), shape.canonical_bytes_per_channel()});
    weights.experts = Experts(ExpertBits(source_, begin, op.experts, shape, bits));
    return weights;
  }

  const std::shared_ptr<const Source>& source_;
  Safetensors& file_;
  const Preprocessing& preprocessing_;
};

}  // namespace

Model read_model(const std::shared_ptr<const Source>& source, const Limits& limits) {
  Safetensors file(*source, limits);
  if (file.metadata("format") != kFormat) {
    fail(Error::FormatNameWrong, "format " + quoted(file.metadata("format")) + " is not '" + kFormat + "'");
  }
  const std::string& version = file.metadata("version");
  const auto known = std::find(std::begin(kVersions), std::end(kVersions), version);
  if (known == std::end(kVersions)) {
    fail(Error::FormatVersionUnsupported, "version " + quoted(version) + " of the format; this program reads " +
                                              kVersions[0] + " to " + *std::prev(std::end(kVersions)));
  }
  Model model;
  model.file_bytes = source->size();
  try {
    model.isa = requested_isa();
  } catch (const std::invalid_argument& error) {
    fail(Error::IsaUnavailable, error.what());
  }
  model.dense_level = requested_dense_level();
  model.int8_level = requested_int8_level();
  model.program_text = file.metadata("program");
  model.preprocessing_text = file.metadata("preprocessing");
  model.network_text = file.metadata("network");
  model.preprocessing = read_preprocessing(json::parse(model.preprocessing_text, "preprocessing"), limits);
  model.labels = read_labels(json::parse(file.metadata("labels"), "labels"));
  require_settings(json::parse(model.network_text, "network"), limits);
  const auto in_channels = static_cast<int>(model.preprocessing.mean.size());
  model.program = read_program(json::parse(model.program_text, "program"), in_channels,
                               static_cast<int>(known - std::begin(kVersions)) + 1, limits);
  if (!model.labels.empty() && model.labels.size() != u(model.program.classes())) {
    fail(Error::LabelsMismatch,
         std::to_string(model.labels.size()) + " labels for " + std::to_string(model.program.classes()) + " classes");
  }
  WeightReader reader(source, file, model.preprocessing);
  for (const Op& op : model.program.ops) model.weights.push_back(reader.read(op));
  file.check_all_taken();
  model.ahead = real_weights_ahead(model.program, model.weights);
  return model;
}

}  // namespace ebnet
