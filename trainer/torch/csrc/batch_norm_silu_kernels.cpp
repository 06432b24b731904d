#include "batch_norm_silu_kernels.h"

#include <cstring>

// The compiler makes a version of each loop for several instruction sets, of
// which the fastest that the processor has is taken when the program starts.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) &&                 \
    !defined(__SANITIZE_ADDRESS__)
#define VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VERSIONS
#endif
#define INLINE inline __attribute__((always_inline))

namespace tcht::kernels {

namespace {

// 2^n, where `n` is a whole number from -126 to 127 plus `kRounding`.
INLINE float power_of_two(float n) {
  int32_t bits;
  std::memcpy(&bits, &n, sizeof(bits));
  bits = (bits + 127) << 23;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// e^x for x from -87 to 87, to about 1e-7 of its value: Cephes' polynomial.
INLINE float exponential(float x) {
  // Adding it rounds to whole numbers, which are then the lowest bits.
  constexpr float kRounding = 12582912.0F;
  const float shifted = x * 1.44269504F + kRounding;
  const float n = shifted - kRounding;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return (p * r * r + r + 1.0F) * power_of_two(shifted);
}

INLINE float sigmoid(float x) {
  constexpr float kLimit = 87.0F;
  const float limited = x > kLimit ? kLimit : (x < -kLimit ? -kLimit : x);
  return 1.0F / (1.0F + exponential(-limited));
}

} // namespace

VERSIONS void add(const float* __restrict x, int64_t groups, int64_t width, float* __restrict sums) {
  for (int64_t group = 0; group < groups; ++group, x += width) {
    for (int64_t i = 0; i < width; ++i) {
      sums[i] += x[i];
    }
  }
}

VERSIONS void add_squares(
    const float* __restrict x,
    int64_t groups,
    int64_t width,
    const float* __restrict mean,
    float* __restrict sums) {
  for (int64_t group = 0; group < groups; ++group, x += width) {
    for (int64_t i = 0; i < width; ++i) {
      const float centered = x[i] - mean[i];
      sums[i] += centered * centered;
    }
  }
}

VERSIONS void forward(
    const float* __restrict x,
    int64_t groups,
    int64_t width,
    const float* __restrict scale,
    const float* __restrict shift,
    float* __restrict y) {
  for (int64_t group = 0; group < groups; ++group, x += width, y += width) {
    for (int64_t i = 0; i < width; ++i) {
      const float z = x[i] * scale[i] + shift[i];
      y[i] = z * sigmoid(z);
    }
  }
}

VERSIONS void backward(
    const float* __restrict x,
    const float* __restrict dy,
    int64_t groups,
    int64_t width,
    const float* __restrict scale,
    const float* __restrict shift,
    const float* __restrict mean,
    float* __restrict dz,
    float* __restrict sums,
    float* __restrict products) {
  for (int64_t group = 0; group < groups; ++group, x += width, dy += width, dz += width) {
    for (int64_t i = 0; i < width; ++i) {
      const float z = x[i] * scale[i] + shift[i];
      const float s = sigmoid(z);
      const float d = dy[i] * (s * (1.0F + z * (1.0F - s)));
      dz[i] = d;
      sums[i] += d;
      products[i] += d * (x[i] - mean[i]);
    }
  }
}

VERSIONS void input_gradient(
    const float* __restrict x,
    int64_t groups,
    int64_t width,
    const float* __restrict scale,
    const float* __restrict mean,
    const float* __restrict offset,
    const float* __restrict slope,
    float* __restrict dx) {
  for (int64_t group = 0; group < groups; ++group, x += width, dx += width) {
    for (int64_t i = 0; i < width; ++i) {
      dx[i] = (dx[i] - offset[i]) * scale[i] - (x[i] - mean[i]) * slope[i];
    }
  }
}

} // namespace tcht::kernels
