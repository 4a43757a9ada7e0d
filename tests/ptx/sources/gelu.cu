__device__ float gelu(float x) {
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
extern "C" __global__ void __launch_bounds__(256) gelu4(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (int k = i; k < n / 4; k += step) {
        float4 v = ((const float4*)x)[k];
        ((float4*)y)[k] = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
    }
    for (int k = n / 4 * 4 + i; k < n; k += step) y[k] = gelu(x[k]);
}
