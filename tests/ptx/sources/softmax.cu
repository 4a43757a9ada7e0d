__device__ float across(float v, bool largest) {
    for (int o = 16; o; o >>= 1) {
        float w = __shfl_xor_sync(0xffffffffu, v, o);
        v = largest ? fmaxf(v, w) : v + w;
    }
    return v;
}
extern "C" __global__ void __launch_bounds__(128) softmax(const float* __restrict__ x, float* __restrict__ y, int m) {
    __shared__ float part[4];
    __shared__ float whole;
    const float* row = x + (long long)blockIdx.x * m;
    float* out = y + (long long)blockIdx.x * m;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = -3.0e38f;
    for (int j = threadIdx.x; j < m; j += blockDim.x) v = fmaxf(v, row[j]);
    v = across(v, true);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (threadIdx.x == 0) whole = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    __syncthreads();
    float most = whole, sum = 0.0f;
    for (int j = threadIdx.x; j < m; j += blockDim.x) sum += __expf(row[j] - most);
    sum = across(sum, false);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) whole = 1.0f / (part[0] + part[1] + part[2] + part[3]);
    __syncthreads();
    for (int j = threadIdx.x; j < m; j += blockDim.x) out[j] = __expf(row[j] - most) * whole;
}
