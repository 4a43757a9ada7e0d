extern "C" __global__ void __launch_bounds__(64)
product(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ float a[8][33];
    __shared__ float b[8][32];
    int tx = threadIdx.x & 7, ty = threadIdx.x >> 3, m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        for (int e = threadIdx.x; e < 256; e += 64) {
            int r = e >> 3, c = e & 7;
            a[c][r] = m0 + r < M && k0 + c < K ? A[(m0 + r) * K + k0 + c] : 0.0f;
        }
        for (int e = threadIdx.x; e < 256; e += 64) {
            int r = e >> 5, c = e & 31;
            b[r][c] = k0 + r < K && n0 + c < N ? B[(k0 + r) * N + n0 + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += a[k][ty * 4 + i] * b[k][tx * 4 + j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = m0 + ty * 4 + i, c = n0 + tx * 4 + j;
            if (r < M && c < N) C[r * N + c] = sum[i][j];
        }
}
