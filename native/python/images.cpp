// ebnet._native.train's batches of images, on numpy's memory.
#include "train/images.h"

#include "python/arrays.h"
#include "python/images.h"
#include "train/resize.h"

namespace nb = nanobind;

namespace ebnet {
namespace {

void run_crop(const In<std::uint8_t>& images, const In<std::int64_t>& indices, const In<std::int64_t>& corners,
              const In<std::uint8_t>& mirrored, int padding, const Out<std::uint8_t>& out, int threads) {
  const std::size_t batch = indices.size();
  require(images.ndim() == 4 && images.shape(1) == images.shape(2), "expected images [count, size, size, channels]");
  require(padding >= 0 && threads > 0 && corners.size() == 2 * batch && mirrored.size() == batch &&
              out.size() == batch * images.shape(1) * images.shape(2) * images.shape(3),
          "a corner, a flag and room for each index");
  for (std::size_t i = 0; i < batch; ++i) {
    const std::int64_t index = indices.data()[i];
    require(index >= 0 && static_cast<std::size_t>(index) < images.shape(0), "an index is not an image's");
    for (std::size_t k = 2 * i; k < 2 * i + 2; ++k) {
      require(corners.data()[k] >= 0 && corners.data()[k] <= 2 * padding, "a corner lies beyond the padding");
    }
  }
  const CropBatch task{images.data(),
                       static_cast<int>(images.shape(1)),
                       static_cast<int>(images.shape(3)),
                       padding,
                       static_cast<int>(batch),
                       indices.data(),
                       corners.data(),
                       mirrored.data(),
                       out.data()};
  const nb::gil_scoped_release release;
  crop_batch(task, threads);
}

void run_resize(const In<std::uint8_t>& images, const In<std::int64_t>& indices, const In<float>& boxes,
                const In<std::uint8_t>& mirrored, const Out<std::uint8_t>& out, int threads) {
  const std::size_t batch = indices.size();
  require(images.ndim() == 4 && out.ndim() == 4 && out.shape(0) == batch && out.shape(1) == out.shape(2) &&
              out.shape(1) > 0 && out.shape(3) == images.shape(3) &&
              (images.shape(3) == 1 || images.shape(3) == 3) && boxes.size() == 4 * batch &&
              mirrored.size() == batch && threads > 0,
          "expected images [count, height, width, channels], and a box, a flag and a square for each index");
  const float width = static_cast<float>(images.shape(2)), height = static_cast<float>(images.shape(1));
  for (std::size_t i = 0; i < batch; ++i) {
    const std::int64_t index = indices.data()[i];
    require(index >= 0 && static_cast<std::size_t>(index) < images.shape(0), "an index is not an image's");
    const float* box = boxes.data() + 4 * i;
    require(0 <= box[0] && box[0] < box[2] && box[2] <= width && 0 <= box[1] && box[1] < box[3] && box[3] <= height,
            "a box is empty or does not lie in its image");
  }
  const ResizeBatch task{images.data(),
                         static_cast<int>(images.shape(1)),
                         static_cast<int>(images.shape(2)),
                         static_cast<int>(images.shape(3)),
                         static_cast<int>(out.shape(1)),
                         static_cast<int>(batch),
                         indices.data(),
                         boxes.data(),
                         mirrored.data(),
                         out.data()};
  const nb::gil_scoped_release release;
  resize_batch(task, threads);
}

void run_normalise(const In<std::uint8_t>& images, const In<float>& table, const Out<float>& out, int threads) {
  require(images.ndim() == 4 && table.ndim() == 2 && table.shape(0) == images.shape(3) && table.shape(1) == 256 &&
              out.size() == images.size() && threads > 0,
          "expected images [batch, height, width, channels], a table [channels, 256] and as many floats");
  const NormaliseBatch task{images.data(),       static_cast<int>(images.shape(0)), static_cast<int>(images.shape(3)),
                            images.shape(1) * images.shape(2), table.data(), out.data()};
  const nb::gil_scoped_release release;
  normalise_batch(task, threads);
}

}  // namespace

void bind_images(nb::module_& m) {
  m.def("crop", &run_crop, nb::arg("images"), nb::arg("indices"), nb::arg("corners"), nb::arg("mirrored"),
        nb::arg("padding"), nb::arg("out"), nb::arg("threads"), "Fill out [batch, size, size, channels].");
  m.def("resize", &run_resize, nb::arg("images"), nb::arg("indices"), nb::arg("boxes"), nb::arg("mirrored"),
        nb::arg("out"), nb::arg("threads"), "Fill out [batch, size, size, channels].");
  m.def("normalise", &run_normalise, nb::arg("images"), nb::arg("table"), nb::arg("out"), nb::arg("threads"),
        "Fill out [batch, channels, height, width].");
}

}  // namespace ebnet
