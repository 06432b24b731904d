#include "batch_norm_silu.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "batch_norm_silu_kernels.h"
#include "shim/error.h"

namespace {

namespace kernels = tcht::kernels;

// A chunk of this many numbers stays in the second-level cache of a core.
constexpr int64_t kChunk = 16384;
// Loops over fewer numbers would mostly begin and end.
constexpr int64_t kLeastWidth = 64;

// A tensor in channels_last, cut into chunks of whole pixels. How it is cut does
// not depend on the number of threads, so neither do the results.
struct Layout {
  int64_t channels;
  int64_t pixels;
  // Pixels that a loop handles at once.
  int64_t unrolled;
  int64_t pixels_per_chunk;

  explicit Layout(const at::Tensor& tensor)
      : channels(tensor.size(1)), pixels(tensor.numel() / channels),
        unrolled(std::max<int64_t>(1, kLeastWidth / channels)),
        pixels_per_chunk(std::max<int64_t>(1, kChunk / channels)) {}

  int64_t width() const {
    return channels * unrolled;
  }

  int64_t chunks() const {
    return (pixels + pixels_per_chunk - 1) / pixels_per_chunk;
  }

  // Calls `body` with the number, the first number in memory and the pixels of
  // each chunk, on several threads.
  template <class Body>
  void for_each_chunk(const Body& body) const {
    at::parallel_for(0, chunks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t first = chunk * pixels_per_chunk;
        body(chunk, first * channels, std::min(pixels_per_chunk, pixels - first));
      }
    });
  }

  // Calls `body` with the offset, the number of groups and their width: for most
  // of the pixels of a chunk, and for the rest.
  template <class Body>
  void for_each_part(int64_t pixels_of_chunk, const Body& body) const {
    const int64_t groups = pixels_of_chunk / unrolled;
    const int64_t rest = pixels_of_chunk - groups * unrolled;
    if (groups > 0) {
      body(0, groups, width());
    }
    if (rest > 0) {
      body(groups * width(), 1, rest * channels);
    }
  }

  // The values of the channels, as often as a loop needs them.
  template <class Value>
  std::vector<float> repeated(const Value& value) const {
    std::vector<float> all(width());
    for (int64_t i = 0; i < width(); ++i) {
      all[i] = static_cast<float>(value(i % channels));
    }
    return all;
  }

  // The sums of the channels from those of a loop.
  void fold(const std::vector<float>& sums, double* of_channels) const {
    std::fill(of_channels, of_channels + channels, 0.0);
    for (int64_t i = 0; i < width(); ++i) {
      of_channels[i % channels] += sums[i];
    }
  }
};

struct Statistics {
  std::vector<double> mean;
  // The sum of the squared differences from the mean.
  std::vector<double> squares;
};

// Each chunk has its own mean, which avoids cancellation; Chan's formula merges
// them. The memory is read once.
Statistics statistics(const Layout& layout, const float* x) {
  const int64_t channels = layout.channels;
  std::vector<double> means(layout.chunks() * channels);
  std::vector<double> squares(layout.chunks() * channels);
  layout.for_each_chunk([&](int64_t chunk, int64_t first, int64_t pixels) {
    double* mean = &means[chunk * channels];
    std::vector<float> sums(layout.width());
    layout.for_each_part(pixels, [&](int64_t offset, int64_t groups, int64_t width) {
      kernels::add(x + first + offset, groups, width, sums.data());
    });
    layout.fold(sums, mean);
    std::for_each(mean, mean + channels, [&](double& value) { value /= static_cast<double>(pixels); });
    // The squares are those of differences from the rounded mean.
    const auto rounded = layout.repeated([&](int64_t channel) { return mean[channel]; });
    std::fill(sums.begin(), sums.end(), 0.0F);
    layout.for_each_part(pixels, [&](int64_t offset, int64_t groups, int64_t width) {
      kernels::add_squares(x + first + offset, groups, width, rounded.data(), sums.data());
    });
    double* square = &squares[chunk * channels];
    layout.fold(sums, square);
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double off = mean[channel] - rounded[channel];
      square[channel] -= off * off * static_cast<double>(pixels);
    }
  });
  Statistics all{std::vector<double>(channels), std::vector<double>(channels)};
  double count = 0;
  for (int64_t chunk = 0; chunk < layout.chunks(); ++chunk) {
    const auto own = static_cast<double>(
        std::min(layout.pixels_per_chunk, layout.pixels - chunk * layout.pixels_per_chunk));
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double difference = means[chunk * channels + channel] - all.mean[channel];
      all.mean[channel] += difference * own / (count + own);
      all.squares[channel] +=
          squares[chunk * channels + channel] + difference * difference * count * own / (count + own);
    }
    count += own;
  }
  return all;
}

at::Tensor channels_last(const at::Tensor& tensor) {
  return tensor.contiguous(at::MemoryFormat::ChannelsLast);
}

struct BatchNormSilu : torch::autograd::Function<BatchNormSilu> {
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& original,
      const at::Tensor& weight,
      const at::Tensor& bias,
      at::Tensor running_mean,
      at::Tensor running_var,
      double momentum,
      double eps) {
    const auto input = channels_last(original);
    const Layout layout(input);
    const int64_t channels = layout.channels;
    const float* x = input.const_data_ptr<float>();
    const auto found = statistics(layout, x);

    const auto mean = at::empty({channels}, input.options());
    const auto invstd = at::empty({channels}, input.options());
    float* means = mean.data_ptr<float>();
    float* invstds = invstd.data_ptr<float>();
    float* running_means = running_mean.data_ptr<float>();
    float* running_vars = running_var.data_ptr<float>();
    const auto count = static_cast<double>(layout.pixels);
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double variance = found.squares[channel] / count;
      means[channel] = static_cast<float>(found.mean[channel]);
      invstds[channel] = static_cast<float>(1 / std::sqrt(variance + eps));
      const double unbiased = found.squares[channel] / (count - 1);
      running_means[channel] =
          static_cast<float>(momentum * found.mean[channel] + (1 - momentum) * running_means[channel]);
      running_vars[channel] =
          static_cast<float>(momentum * unbiased + (1 - momentum) * running_vars[channel]);
    }

    const Affine affine(layout, weight, bias, mean, invstd);
    auto output = at::empty_like(input);
    float* y = output.data_ptr<float>();
    layout.for_each_chunk([&](int64_t, int64_t first, int64_t pixels) {
      layout.for_each_part(pixels, [&](int64_t offset, int64_t groups, int64_t width) {
        const int64_t at = first + offset;
        kernels::forward(x + at, groups, width, affine.scale.data(), affine.shift.data(), y + at);
      });
    });
    context->save_for_backward({input, weight, bias, mean, invstd});
    return output;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const auto& weight = saved[1];
    const auto& bias = saved[2];
    const auto& mean = saved[3];
    const auto& invstd = saved[4];
    const Layout layout(input);
    const int64_t channels = layout.channels;
    const auto gradient = channels_last(gradients[0]);
    const float* x = input.const_data_ptr<float>();
    const float* dy = gradient.const_data_ptr<float>();
    const Affine affine(layout, weight, bias, mean, invstd);

    auto input_gradient = at::empty_like(input);
    float* dx = input_gradient.data_ptr<float>();
    std::vector<double> sums_of_chunks(layout.chunks() * channels);
    std::vector<double> products_of_chunks(layout.chunks() * channels);
    layout.for_each_chunk([&](int64_t chunk, int64_t first, int64_t pixels) {
      std::vector<float> sums(layout.width());
      std::vector<float> products(layout.width());
      layout.for_each_part(pixels, [&](int64_t offset, int64_t groups, int64_t width) {
        const int64_t at = first + offset;
        kernels::backward(
            x + at,
            dy + at,
            groups,
            width,
            affine.scale.data(),
            affine.shift.data(),
            affine.mean.data(),
            dx + at,
            sums.data(),
            products.data());
      });
      layout.fold(sums, &sums_of_chunks[chunk * channels]);
      layout.fold(products, &products_of_chunks[chunk * channels]);
    });
    std::vector<double> sums(channels);
    std::vector<double> products(channels);
    for (int64_t chunk = 0; chunk < layout.chunks(); ++chunk) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        sums[channel] += sums_of_chunks[chunk * channels + channel];
        products[channel] += products_of_chunks[chunk * channels + channel];
      }
    }

    auto weight_gradient = at::empty_like(weight);
    auto bias_gradient = at::empty_like(bias);
    const float* invstds = invstd.const_data_ptr<float>();
    for (int64_t channel = 0; channel < channels; ++channel) {
      weight_gradient.data_ptr<float>()[channel] = static_cast<float>(products[channel] * invstds[channel]);
      bias_gradient.data_ptr<float>()[channel] = static_cast<float>(sums[channel]);
    }
    const auto count = static_cast<double>(layout.pixels);
    const auto offset = layout.repeated([&](int64_t channel) { return sums[channel] / count; });
    const auto slope = layout.repeated([&](int64_t channel) {
      const double inverse = invstds[channel];
      return products[channel] * inverse * inverse / count * affine.scale[channel];
    });
    layout.for_each_chunk([&](int64_t, int64_t first, int64_t pixels) {
      layout.for_each_part(pixels, [&](int64_t begin, int64_t groups, int64_t width) {
        const int64_t at = first + begin;
        kernels::input_gradient(
            x + at,
            groups,
            width,
            affine.scale.data(),
            affine.mean.data(),
            offset.data(),
            slope.data(),
            dx + at);
      });
    });
    const at::Tensor none;
    return {input_gradient, weight_gradient, bias_gradient, none, none, none, none};
  }

  // The factor and the summand that normalize a channel, and its mean.
  struct Affine {
    std::vector<float> scale;
    std::vector<float> shift;
    std::vector<float> mean;

    Affine(
        const Layout& layout,
        const at::Tensor& weight,
        const at::Tensor& bias,
        const at::Tensor& of_mean,
        const at::Tensor& of_invstd) {
      const float* weights = weight.const_data_ptr<float>();
      const float* biases = bias.const_data_ptr<float>();
      const float* means = of_mean.const_data_ptr<float>();
      const float* invstds = of_invstd.const_data_ptr<float>();
      scale = layout.repeated([&](int64_t channel) { return weights[channel] * invstds[channel]; });
      shift = layout.repeated([&](int64_t channel) {
        return biases[channel] - means[channel] * (weights[channel] * invstds[channel]);
      });
      mean = layout.repeated([&](int64_t channel) { return means[channel]; });
    }
  };
};

void check_channels(const at::Tensor& tensor, int64_t channels, const char* name) {
  TORCH_CHECK(
      tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat && tensor.dim() == 1 &&
          tensor.size(0) == channels && tensor.is_contiguous(),
      name,
      " must be ",
      channels,
      " float32 numbers on the CPU, one for each channel, got ",
      tensor.toString(),
      " of size ",
      tensor.sizes());
}

} // namespace

extern "C" int tcht_batch_norm_silu_uses_threads() {
#ifdef INTRA_OP_PARALLEL
  return 1;
#else
  return at::get_num_threads() == 1 ? 1 : 0;
#endif
}

extern "C" int tcht_batch_norm_silu(
    at::Tensor* input,
    at::Tensor* weight,
    at::Tensor* bias,
    at::Tensor* running_mean,
    at::Tensor* running_var,
    double momentum,
    double eps,
    at::Tensor** out) {
  return tcht::guarded([&] {
    TORCH_CHECK(
        input->dim() == 4 && input->device().is_cpu() && input->scalar_type() == at::kFloat,
        "the input must be (N, C, H, W) in float32 on the CPU, got ",
        input->toString(),
        " of size ",
        input->sizes());
    const int64_t channels = input->size(1);
    TORCH_CHECK(
        channels > 0 && input->numel() / channels > 1,
        "Expected more than 1 value per channel when training, got input size ",
        input->sizes());
    check_channels(*weight, channels, "weight");
    check_channels(*bias, channels, "bias");
    check_channels(*running_mean, channels, "running_mean");
    check_channels(*running_var, channels, "running_var");
    *out = new at::Tensor(
        BatchNormSilu::apply(*input, *weight, *bias, *running_mean, *running_var, momentum, eps));
  });
}
