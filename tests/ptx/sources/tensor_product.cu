typedef unsigned short half_bits;
__device__ unsigned place(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place(to)), "l"(from));
}
__device__ void load4(unsigned* r, const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(place(p)));
}
__device__ void load4t(unsigned* r, const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(place(p)));
}
__device__ void mma(float* d, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ void __launch_bounds__(128)
product(const half_bits* __restrict__ A, const half_bits* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    extern __shared__ __align__(16) half_bits tiles[];  // A: 2 x 64 x 40, then B: 2 x 32 x 72
    half_bits *as = tiles, *bs = tiles + 2 * 64 * 40;
    int t = threadIdx.x, lane = t & 31, w = t >> 5;
    int m0 = blockIdx.y * 64, n0 = blockIdx.x * 64, wm = (w >> 1) * 32, wn = (w & 1) * 32;
    float sum[2][4][4] = {};
    auto fetch = [&](int k, int buffer) {
        for (int c = t; c < 256; c += 128) {
            copy16(as + buffer * 2560 + (c >> 2) * 40 + (c & 3) * 8, A + (m0 + (c >> 2)) * K + k * 32 + (c & 3) * 8);
            copy16(bs + buffer * 2304 + (c >> 3) * 72 + (c & 7) * 8, B + (k * 32 + (c >> 3)) * N + n0 + (c & 7) * 8);
        }
    };
    fetch(0, 0);
    asm volatile("cp.async.commit_group;");
    for (int k = 0; k < K / 32; k++) {
        int buffer = k & 1;
        if (k + 1 < K / 32) fetch(k + 1, buffer ^ 1);
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group %0;" :: "n"(1));
        __syncthreads();
        for (int i0 = 0; i0 < 32; i0 += 16) {
            unsigned a[2][4], b[2][4];
            for (int i = 0; i < 2; i++)
                load4(a[i], as + buffer * 2560 + (wm + i * 16 + (lane & 15)) * 40 + i0 + (lane >> 4) * 8);
            for (int j = 0; j < 2; j++)
                load4t(b[j], bs + buffer * 2304 + (i0 + (lane & 15)) * 72 + wn + j * 16 + (lane >> 4) * 8);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) mma(sum[i][j], a[i], &b[j >> 1][(j & 1) * 2]);
        }
        __syncthreads();
    }
    asm volatile("cp.async.wait_group 0;");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            int r = m0 + wm + i * 16 + (lane >> 2), c = n0 + wn + j * 8 + (lane & 3) * 2;
            C[r * N + c] = sum[i][j][0];
            C[r * N + c + 1] = sum[i][j][1];
            C[(r + 8) * N + c] = sum[i][j][2];
            C[(r + 8) * N + c + 1] = sum[i][j][3];
        }
}
