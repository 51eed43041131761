// Every level of the binary unit against its formulas in plain loops and double precision, over a sweep of shapes, in
// buffers exactly as large as the interface says.
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/levels.h"
#include "tests/unit_reference.h"

namespace {

using namespace ebnet;
using namespace ebnet::unit_test;

int failures = 0;

// In a thread of its own, whose scratch is fresh and exactly as large as this call asks for.
template <typename Call>
void afresh(Call call) {
  std::thread(call).join();
}
// Rounding: a part in 1e4 of the largest value.
void compare(const char* what, DenseLevel level, const Floats& got, const Doubles& expected) {
  double largest = 1e-2;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(as_double(got[i]) - expected[i]) <= 1e-4 * largest) continue;
    std::printf("%s %s: value %zu is %g, expected %g\n", dense_level_name(level), what, i, as_double(got[i]),
                expected[i]);
    ++failures;
    return;
  }
}

// A gradient is wanted where the parameter is there.
float* wanted(Floats& gradient, const Floats& parameter) {
  gradient.assign(parameter.size(), -7.0f);
  return parameter.empty() ? nullptr : gradient.data();
}

bool check(DenseLevel level, int threads) {
  const ConvShape s = random_shape();
  if (!s.valid()) return false;
  Case c(s);
  const UnitLayer& layer = c.layer;
  const std::size_t batch = size(layer.batch);
  std::vector<std::int64_t> chosen(batch, -7);
  Floats y(batch * c.out, -7.0f), kept(unit_kept_floats(layer)), conv(unit_conv_count(layer));
  std::vector<std::int16_t> counts(unit_conv_count(layer));
  UnitForward forward;
  forward.x = c.x.data();
  forward.skip = c.other_skip ? c.skip.data() : nullptr;
  forward.y = y.data();
  forward.conv = layer.counts() ? static_cast<void*>(counts.data()) : conv.data();
  forward.kept = kept.data();
  forward.chosen = chosen.data();
  bool finite = false;
  afresh([&] { finite = unit_forward(layer, forward, threads, level); });
  Floats dx, dgamma, dbeta, dtheta, dscale, dbias, dgate, dgate_bias, dsqueeze, dexcite, dslope;
  UnitBackward back;
  back.x = c.x.data();
  back.dy = c.dy.data();
  back.skip_is_x = !c.other_skip;
  back.conv = forward.conv;
  back.kept = kept.data();
  back.chosen = chosen.data();
  back.dx = wanted(dx, c.x);
  back.dgamma = wanted(dgamma, c.gamma);
  back.dbeta = wanted(dbeta, c.beta);
  back.dtheta = wanted(dtheta, c.theta);
  back.dscale = wanted(dscale, c.scale);
  back.dbias = wanted(dbias, c.bias);
  back.dgate = wanted(dgate, c.gate);
  back.dgate_bias = wanted(dgate_bias, c.gate_bias);
  back.dsqueeze = wanted(dsqueeze, c.squeeze);
  back.dexcite = wanted(dexcite, c.excite);
  back.dslope = wanted(dslope, c.slope);
  afresh([&] { unit_backward(layer, back, threads, level); });

  Reference reference(c);
  reference.normalise();
  if (!finite || !reference.choose(chosen) || !reference.forward(chosen)) return false;
  compare("output", level, y, reference.y);
  const Gradients d = backward(reference, chosen);
  compare("input gradient", level, dx, d.x);
  compare("norm's weights", level, dgamma, d.gamma);
  compare("norm's biases", level, dbeta, d.beta);
  compare("weights", level, dtheta, d.theta);
  compare("scale", level, dscale, d.scale);
  compare("bias", level, dbias, d.bias);
  compare("gate", level, dgate, d.gate);
  compare("gate's bias", level, dgate_bias, d.gate_bias);
  compare("squeeze", level, dsqueeze, d.squeeze);
  compare("excite", level, dexcite, d.excite);
  compare("slope", level, dslope, d.slope);
  return true;
}

// NaN anywhere in a gated input is told, not chosen by.
void check_nan(DenseLevel level) {
  ConvShape s;
  s.in_channels = s.out_channels = 20;
  s.in_h = s.in_w = 5;
  for (int attempt = 0; attempt < 20; ++attempt) {
    Case c(s);
    if (c.layer.gate == nullptr) continue;
    c.x[generator() % c.x.size()] = std::nanf("");
    Floats y(c.dy.size()), kept(unit_kept_floats(c.layer));
    std::vector<std::int64_t> chosen(size(c.layer.batch));
    UnitForward io;
    io.x = c.x.data();
    io.y = y.data();
    io.kept = kept.data();
    io.chosen = chosen.data();
    if (!unit_forward(c.layer, io, 2, level)) continue;
    std::printf("%s: NaN went unnoticed\n", dense_level_name(level));
    ++failures;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_levels(argc, argv, 200, failures, [](DenseLevel level, int cases) {
    int compared = 0;
    for (int i = 0; i < cases; ++i) compared += check(level, 1 + i % 3) ? 1 : 0;
    check_nan(level);
    if (compared >= cases / 4) return;
    std::printf("only %d of %d cases could be compared\n", compared, cases);
    ++failures;
  });
}
