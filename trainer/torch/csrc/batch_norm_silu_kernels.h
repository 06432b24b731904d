// The loops of batch_norm_silu.cpp. Each handles `groups` groups of `width`
// numbers that follow each other in memory: one or several pixels in
// channels_last. Arrays of parameters have `width` numbers.
#pragma once

#include <cstdint>

namespace tcht::kernels {

// sums[i] += x[i]
void add(const float* x, int64_t groups, int64_t width, float* sums);
// sums[i] += (x[i] - mean[i])^2
void add_squares(const float* x, int64_t groups, int64_t width, const float* mean, float* sums);
// y[i] = silu(x[i] * scale[i] + shift[i])
void forward(const float* x, int64_t groups, int64_t width, const float* scale, const float* shift, float* y);
// The gradient of the normalized value, from that of the result:
// dz[i] = dy[i] * silu'(x[i] * scale[i] + shift[i])
// sums[i] += dz[i], products[i] += dz[i] * (x[i] - mean[i])
void backward(
    const float* x,
    const float* dy,
    int64_t groups,
    int64_t width,
    const float* scale,
    const float* shift,
    const float* mean,
    float* dz,
    float* sums,
    float* products);
// dx[i] = (dx[i] - offset[i]) * scale[i] - (x[i] - mean[i]) * slope[i], where dx
// has dz on entry.
void input_gradient(
    const float* x,
    int64_t groups,
    int64_t width,
    const float* scale,
    const float* mean,
    const float* offset,
    const float* slope,
    float* dx);

} // namespace tcht::kernels
