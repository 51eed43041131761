// Every level of a training step's other operations (real layers, max pool, Adam, images) against their formulas in plain
// loops and double precision, over a sweep of shapes, in buffers exactly as large as the interface says.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/levels.h"
#include "train/adam.h"
#include "train/images.h"
#include "train/max_pool.h"
#include "train/real_layer.h"
#include "train/resize.h"

namespace {

using namespace ebnet;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

std::mt19937 generator(1);
int failures = 0;

int pick(std::initializer_list<int> values) { return values.begin()[generator() % values.size()]; }

std::size_t size(int a, int b = 1, int c = 1, int d = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c) * static_cast<std::size_t>(d);
}

Floats normal(std::size_t count) {
  std::normal_distribution<float> distribution;
  Floats values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

// In a thread of its own, whose scratch is fresh and exactly as large as this call asks for.
template <typename Call>
void afresh(Call call) {
  std::thread(call).join();
}

void compare(const char* what, DenseLevel level, const Floats& got, const Doubles& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(static_cast<double>(got[i]) - expected[i]) <= tolerance * (1 + std::fabs(expected[i]))) continue;
    std::printf("%s %s: value %zu is %g, expected %g\n", dense_level_name(level), what, i, static_cast<double>(got[i]),
                expected[i]);
    ++failures;
    return;
  }
}

// The layer's y and gradients by definition; the statistics are the running ones, so that each number stands alone.
void check_real_layer(DenseLevel level) {
  RealLayer layer;
  ConvShape& s = layer.shape;
  s.groups = s.dilation_h = s.dilation_w = 1;
  s.in_channels = pick({1, 3, 8, 17});
  s.out_channels = pick({1, 4, 7, 13, 30});
  layer.pool = pick({1, 1, 2, 3});
  layer.map_h = pick({1, 2, 5, 8, 19});
  layer.map_w = pick({1, 3, 7, 8, 36});
  s.in_h = (layer.map_h + layer.pool - 1) / layer.pool;
  s.in_w = (layer.map_w + layer.pool - 1) / layer.pool;
  const bool pooled = layer.pool > 1;
  s.pad_h = s.pad_w = pooled ? 0 : pick({0, 1, 2});
  s.kernel_h = pooled ? 1 : std::min(pick({1, 2, 3, 5}), s.in_h + 2 * s.pad_h);
  s.kernel_w = pooled ? 1 : std::min(pick({1, 3}), s.in_w + 2 * s.pad_w);
  s.stride_h = s.stride_w = pooled ? 1 : pick({1, 2, 3});
  layer.batch = pick({1, 2, 5});
  layer.activation = static_cast<Activation>(pick({0, 1, 2}));
  layer.eps = 1e-5f;
  const int channels = s.out_channels, positions = s.out_h() * s.out_w();
  const std::size_t outputs = size(layer.batch, channels, positions), plane = size(layer.map_h, layer.map_w);
  Floats x = normal(size(layer.batch, s.in_channels) * plane), weight = normal(size(channels, s.in_channels, s.taps()));
  Floats gamma = normal(size(channels)), beta = normal(size(channels)), slope = normal(size(channels));
  Floats running_mean = normal(size(channels)), running_var(size(channels), 1.5f), mean(size(channels)), rstd(size(channels));
  Floats z(storage_floats(layer)), y(outputs), dy = normal(outputs), dx(x.size()), dweight(weight.size());
  Floats dgamma(size(channels)), dbeta(size(channels)), dslope(size(channels));
  layer.x = x.data(), layer.weight = weight.data(), layer.gamma = gamma.data(), layer.beta = beta.data();
  layer.slope = slope.data(), layer.running_mean = running_mean.data(), layer.running_var = running_var.data();
  layer.mean = mean.data(), layer.rstd = rstd.data(), layer.z = z.data(), layer.y = y.data();
  layer.y_stride = size(channels, positions);
  layer.dy = dy.data(), layer.dx = dx.data(), layer.dweight = dweight.data(), layer.dgamma = dgamma.data();
  layer.dbeta = dbeta.data(), layer.dslope = dslope.data();
  const int threads = pick({1, 2, 3});
  afresh([&] { real_forward(layer, threads, level); });
  afresh([&] { real_backward(layer, threads, level); });

  Doubles wanted_y(outputs), wanted_dx(dx.size()), wanted_dweight(dweight.size());
  Doubles wanted_dgamma(size(channels)), wanted_dbeta(size(channels));
  bool corner = false;  // of the activation, where rounding decides which side a value is on
  const auto window = [&](int image, int channel, int row, int column, auto visit) {  // of the pooled input
    const int bottom = std::min(layer.map_h, (row + 1) * layer.pool), right = std::min(layer.map_w, (column + 1) * layer.pool);
    const double count = (bottom - row * layer.pool) * (right - column * layer.pool);
    for (int v = row * layer.pool; v < bottom; ++v) {
      for (int u = column * layer.pool; u < right; ++u) {
        visit(size(image * s.in_channels + channel) * plane + size(v * layer.map_w + u), 1.0 / count);
      }
    }
  };
  const auto taps = [&](int image, int o, int row, int column, auto visit) {
    for (int c = 0; c < s.in_channels; ++c) {
      for (int ky = 0; ky < s.kernel_h; ++ky) {
        for (int kx = 0; kx < s.kernel_w; ++kx) {
          const int v = row * s.stride_h + ky - s.pad_h, u = column * s.stride_w + kx - s.pad_w;
          if (v < 0 || v >= s.in_h || u < 0 || u >= s.in_w) continue;
          const std::size_t w = size((o * s.in_channels + c) * s.taps() + ky * s.kernel_w + kx);
          window(image, c, v, u, [&](std::size_t at, double share) { visit(w, at, share); });
        }
      }
    }
  };
  for (int image = 0; image < layer.batch; ++image) {
    for (int o = 0; o < channels; ++o) {
      for (int p = 0; p < positions; ++p) {
        const int row = p / s.out_w(), column = p % s.out_w();
        double sum = 0;
        taps(image, o, row, column, [&](std::size_t w, std::size_t at, double share) {
          sum += static_cast<double>(weight[w]) * static_cast<double>(x[at]) * share;
        });
        const double inverse = 1 / std::sqrt(1.5 + static_cast<double>(layer.eps));
        const double hat = (sum - static_cast<double>(running_mean[size(o)])) * inverse;
        const double u = static_cast<double>(gamma[size(o)]) * hat + static_cast<double>(beta[size(o)]);
        const double below = layer.activation == Activation::none   ? 1.0
                             : layer.activation == Activation::relu ? 0.0
                                                                    : static_cast<double>(slope[size(o)]);
        const std::size_t at = size(image * channels + o) * size(positions) + size(p);
        wanted_y[at] = u > 0 ? u : below * u;
        corner = corner || std::fabs(u) < 1e-5;
        const double du = static_cast<double>(dy[at]) * (u > 0 ? 1.0 : below);
        wanted_dbeta[size(o)] += du;
        wanted_dgamma[size(o)] += du * hat;
        const double dz = du * static_cast<double>(gamma[size(o)]) * inverse;
        taps(image, o, row, column, [&](std::size_t w, std::size_t from, double share) {
          wanted_dweight[w] += dz * share * static_cast<double>(x[from]);
          wanted_dx[from] += dz * share * static_cast<double>(weight[w]);
        });
      }
    }
  }
  compare("y", level, y, wanted_y, 1e-4);
  if (!corner) {
    compare("dx", level, dx, wanted_dx, 1e-3);
    compare("dweight", level, dweight, wanted_dweight, 1e-3);
    compare("dgamma", level, dgamma, wanted_dgamma, 1e-3);
    compare("dbeta", level, dbeta, wanted_dbeta, 1e-3);
  }
  layer.training = true;  // the barriers and statistics stay inside their buffers too; their values are Python's test
  if (layer.batch * positions > 1) {
    afresh([&] { real_forward(layer, threads, level); });
    afresh([&] { real_backward(layer, threads, level); });
  }
}

void check_max_pool(DenseLevel level) {
  MaxPool task;
  task.channels = pick({1, 2, 5});
  task.planes = task.channels * pick({1, 3});
  task.kernel = pick({1, 2, 3, 5});
  task.padding = pick({0, (task.kernel - 1) / 2});
  task.stride = pick({1, 2, 3});
  task.in_h = std::max(task.kernel, pick({1, 4, 9, 16}));
  task.in_w = std::max(task.kernel, pick({1, 3, 8, 33}));
  const std::size_t in = size(task.in_h, task.in_w), out = size(task.out_h(), task.out_w());
  Floats x = normal(size(task.planes) * in), y(size(task.planes) * out), dy = normal(y.size()), dx(x.size());
  std::vector<std::uint8_t> place(y.size());
  task.x = x.data(), task.y = y.data(), task.place = place.data(), task.dy = dy.data(), task.dx = dx.data();
  task.y_stride = size(task.channels) * out;
  afresh([&] { max_pool(task, 2, level); });
  afresh([&] { max_pool_gradient(task, 2); });
  Doubles wanted(y.size()), gradient(x.size());
  for (int plane = 0; plane < task.planes; ++plane) {
    for (int row = 0; row < task.out_h(); ++row) {
      for (int column = 0; column < task.out_w(); ++column) {
        double best = -INFINITY;
        std::size_t where = 0;
        for (int v = row * task.stride - task.padding; v < row * task.stride - task.padding + task.kernel; ++v) {
          for (int u = column * task.stride - task.padding; u < column * task.stride - task.padding + task.kernel; ++u) {
            if (v < 0 || v >= task.in_h || u < 0 || u >= task.in_w) continue;
            const std::size_t at = size(plane) * in + size(v * task.in_w + u);
            if (static_cast<double>(x[at]) <= best) continue;
            best = static_cast<double>(x[at]);
            where = at;
          }
        }
        const std::size_t at = size(plane) * out + size(row * task.out_w() + column);
        wanted[at] = best;
        gradient[where] += static_cast<double>(dy[at]);
      }
    }
  }
  compare("max pool", level, y, wanted, 0);
  compare("max pool gradient", level, dx, gradient, 1e-5);
}

void check_adam(DenseLevel level) {
  const int experts = pick({1, 1, 2, 5});
  const std::size_t each = size(pick({1, 3, 16, 50, 40000})), count = each * size(experts);
  Floats parameter = normal(count), first = normal(count), second(count, 0.3f), step(1, 4.0f);
  const Floats gradient = normal(count), before = parameter, moment = first;
  const AdamTensor tensor{parameter.data(), gradient.data(), first.data(), second.data(), step.data(), count, 1e-2, 0.1,
                          experts, 0.5f};
  adam(&tensor, 1, {0.9, 0.999, 1e-8}, pick({1, 2, 3}), level);
  Doubles wanted(count);
  for (std::size_t i = 0; i < count; ++i) {
    double shared = 0;
    for (std::size_t e = 0; experts > 1 && e < size(experts); ++e) shared += static_cast<double>(gradient[e * each + i % each]);
    const double p = static_cast<double>(before[i]), g = static_cast<double>(gradient[i]) + 0.5 * shared + 0.1 * p;
    const double m = 0.9 * static_cast<double>(moment[i]) + 0.1 * g, v = 0.999 * static_cast<double>(0.3f) + 0.001 * g * g;
    wanted[i] = p - 1e-2 * (m / (1 - std::pow(0.9, 5))) / (std::sqrt(v / (1 - std::pow(0.999, 5))) + 1e-8);
  }
  compare("adam", level, parameter, wanted, 1e-5);
}

void check_images(DenseLevel level) {
  CropBatch task;
  task.size = pick({1, 4, 9}), task.channels = pick({1, 3, 4}), task.padding = pick({0, 2, 12}), task.batch = pick({1, 5});
  const std::size_t image = size(task.size, task.size, task.channels);
  std::vector<std::uint8_t> images(3 * image), mirrored(size(task.batch)), out(size(task.batch) * image);
  for (std::uint8_t& pixel : images) pixel = static_cast<std::uint8_t>(1 + generator() % 255);
  std::vector<std::int64_t> indices(size(task.batch)), corners(size(task.batch, 2));
  for (auto& index : indices) index = static_cast<std::int64_t>(generator() % 3);
  for (auto& corner : corners) corner = static_cast<std::int64_t>(generator() % static_cast<unsigned>(2 * task.padding + 1));
  for (auto& flag : mirrored) flag = static_cast<std::uint8_t>(generator() % 2);
  task.images = images.data(), task.indices = indices.data(), task.corners = corners.data();
  task.mirrored = mirrored.data(), task.out = out.data();
  crop_batch(task, 2);
  Floats got(out.begin(), out.end()), normalised(out.size()), table(size(task.channels, 256));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  normalise_batch({out.data(), task.batch, task.channels, size(task.size, task.size), table.data(), normalised.data()}, 2);
  Doubles wanted(out.size()), planes(out.size());
  for (int i = 0; i < task.batch; ++i) {
    for (int y = 0; y < task.size; ++y) {
      for (int x = 0; x < task.size; ++x) {
        for (int c = 0; c < task.channels; ++c) {
          const int v = y + static_cast<int>(corners[size(2 * i)]) - task.padding;
          const int shown = mirrored[size(i)] != 0 ? task.size - 1 - x : x;
          const int u = shown + static_cast<int>(corners[size(2 * i + 1)]) - task.padding;
          const bool inside = v >= 0 && v < task.size && u >= 0 && u < task.size;
          const std::size_t from = static_cast<std::size_t>(indices[size(i)]) * image + size((v * task.size + u) * task.channels + c);
          const double pixel = inside ? static_cast<double>(images[from]) : 0;
          wanted[size(i) * image + size((y * task.size + x) * task.channels + c)] = pixel;
          planes[size(i) * image + size((c * task.size + y) * task.size + x)] = 256 * c + pixel;
        }
      }
    }
  }
  compare("crop", level, got, wanted, 0);
  compare("normalise", level, normalised, planes, 0);
}

// The weighted mean of the pixels under a triangle, both axes at once. Between its passes the kernel rounds to bytes, which
// is off by half a step in each.
void check_resize(DenseLevel level) {
  ResizeBatch task;
  task.height = pick({1, 5, 20}), task.width = pick({1, 7, 20}), task.channels = pick({1, 3}), task.size = pick({1, 4, 33});
  task.batch = 1;
  std::vector<std::uint8_t> image(size(task.height, task.width, task.channels));
  std::vector<std::uint8_t> out(size(task.size, task.size, task.channels)), mirrored(1, static_cast<std::uint8_t>(generator() % 2));
  for (std::uint8_t& pixel : image) pixel = static_cast<std::uint8_t>(generator() % 256);
  const float shift = 0.01f * static_cast<float>(generator() % 90), wide = static_cast<float>(task.width), high = static_cast<float>(task.height);
  const Floats box = {shift * 0.5f, shift, wide, high - 0.01f};
  const std::vector<std::int64_t> indices(1, 0);
  task.images = image.data(), task.indices = indices.data(), task.boxes = box.data(), task.mirrored = mirrored.data();
  task.out = out.data();
  resize_batch(task, 2);
  const auto weight = [&](int i, int o, int axis) {
    const double begin = static_cast<double>(box[size(axis)]), scale = (static_cast<double>(box[size(axis + 2)]) - begin) / task.size;
    return std::max(0.0, 1 - std::fabs(i + 0.5 - begin - (o + 0.5) * scale) / std::max(1.0, scale));
  };
  Doubles wanted(out.size());
  for (int y = 0; y < task.size; ++y) {
    for (int x = 0; x < task.size; ++x) {
      for (int c = 0; c < task.channels; ++c) {
        double sum = 0, total = 0;
        for (int v = 0; v < task.height; ++v) {
          for (int u = 0; u < task.width; ++u) {
            const double w = weight(v, y, 1) * weight(u, mirrored[0] != 0 ? task.size - 1 - x : x, 0);
            sum += w * static_cast<double>(image[size((v * task.width + u) * task.channels + c)]);
            total += w;
          }
        }
        wanted[size((y * task.size + x) * task.channels + c)] = sum / total / 256;
      }
    }
  }
  Floats got(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) got[i] = static_cast<float>(out[i]) / 256;
  compare("resize", level, got, wanted, 1.01 / 256);
}

}  // namespace

int main(int argc, char** argv) {
  return run_levels(argc, argv, 300, failures,
                    in_each_case(check_real_layer, check_max_pool, check_adam, check_images, check_resize));
}
