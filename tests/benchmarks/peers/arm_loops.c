/* The inner loops of llama.cpp's kernels for Arm (repack.cpp: gemv and gemm of q8_0 and q4_0, four columns), written
   anew with the same intrinsics for `python -m tests.benchmarks arm-estimate`: they are compiled and looked at, never run. */
#include <arm_neon.h>
typedef struct { __fp16 d; int8_t qs[32]; } q8; typedef struct { __fp16 d[4]; int8_t qs[128]; } q8x4;
typedef struct { __fp16 d[4]; uint8_t qs[64]; } q4x4;

/* One row, four columns. MACs: 128; bytes: 136. */
void gemv_q8_4x4(int nb, float *s, const q8x4 *b, const q8 *a) {
    float32x4_t acc = vdupq_n_f32(0);
    for (int i = 0; i < nb; i++) {
        int32x4_t t = vdupq_n_s32(0);
        int8x16_t a0 = vld1q_s8(a[i].qs), a1 = vld1q_s8(a[i].qs + 16);
#define D(k, r, l) t = vdotq_laneq_s32(t, vld1q_s8(b[i].qs + 16 * k), r, l)
        D(0, a0, 0); D(1, a0, 1); D(2, a0, 2); D(3, a0, 3); D(4, a1, 0); D(5, a1, 1); D(6, a1, 2); D(7, a1, 3);
#undef D
        float16x4_t ad = vld1_dup_f16(&a[i].d), bd = vld1_f16(b[i].d);
        acc = vfmaq_f32(acc, vcvtq_f32_s32(t), vmulq_f32(vcvt_f32_f16(ad), vcvt_f32_f16(bd)));
    }
    vst1q_f32(s, acc);
}
/* MACs: 128; bytes: 72. */
void gemv_q4_4x4(int nb, float *s, const q4x4 *b, const q8 *a) {
    float32x4_t acc = vdupq_n_f32(0);
    for (int i = 0; i < nb; i++) {
        int32x4_t t = vdupq_n_s32(0);
        int8x16_t a0 = vld1q_s8(a[i].qs), a1 = vld1q_s8(a[i].qs + 16);
        int8x16_t b0 = vreinterpretq_s8_u8(vld1q_u8(b[i].qs)), b1 = vreinterpretq_s8_u8(vld1q_u8(b[i].qs + 16));
        int8x16_t b2 = vreinterpretq_s8_u8(vld1q_u8(b[i].qs + 32)), b3 = vreinterpretq_s8_u8(vld1q_u8(b[i].qs + 48));
        t = vdotq_laneq_s32(t, b0 << 4, a0, 0); t = vdotq_laneq_s32(t, b1 << 4, a0, 1);
        t = vdotq_laneq_s32(t, b2 << 4, a0, 2); t = vdotq_laneq_s32(t, b3 << 4, a0, 3);
        int8x16_t m = vdupq_n_s8(-16);
        t = vdotq_laneq_s32(t, b0 & m, a1, 0); t = vdotq_laneq_s32(t, b1 & m, a1, 1);
        t = vdotq_laneq_s32(t, b2 & m, a1, 2); t = vdotq_laneq_s32(t, b3 & m, a1, 3);
        float16x4_t ad = vld1_dup_f16(&a[i].d), bd = vld1_f16(b[i].d);
        acc = vfmaq_f32(acc, vcvtq_n_f32_s32(t, 4), vmulq_f32(vcvt_f32_f16(ad), vcvt_f32_f16(bd)));
    }
    vst1q_f32(s, acc);
}
#define FOUR_ROWS(CV)                                                                              \
    f0 = vmlaq_f32(f0, vmulq_laneq_f32(bd, ad, 0), CV(t0)); f1 = vmlaq_f32(f1, vmulq_laneq_f32(bd, ad, 1), CV(t1)); \
    f2 = vmlaq_f32(f2, vmulq_laneq_f32(bd, ad, 2), CV(t2)); f3 = vmlaq_f32(f3, vmulq_laneq_f32(bd, ad, 3), CV(t3));
/* Four rows, four columns. MACs: 512; bytes: 136. */
void gemm_q8_4x4(int nb, float *s, const q8x4 *b, const q8x4 *a) {
    float32x4_t f0 = vdupq_n_f32(0), f1 = f0, f2 = f0, f3 = f0;
    for (int i = 0; i < nb; i++) {
        float32x4_t ad = vcvt_f32_f16(vld1_f16(a[i].d)), bd = vcvt_f32_f16(vld1_f16(b[i].d));
        int32x4_t t0 = vdupq_n_s32(0), t1 = t0, t2 = t0, t3 = t0;
#pragma clang loop unroll(full)
        for (int g = 0; g < 8; g += 4) {
            int8x16x4_t x = vld1q_s8_x4(a[i].qs + 16 * g), w = vld1q_s8_x4(b[i].qs + 16 * g);
#pragma clang loop unroll(full)
            for (int k = 0; k < 4; k++) {
                t0 = vdotq_laneq_s32(t0, w.val[k], x.val[k], 0); t1 = vdotq_laneq_s32(t1, w.val[k], x.val[k], 1);
                t2 = vdotq_laneq_s32(t2, w.val[k], x.val[k], 2); t3 = vdotq_laneq_s32(t3, w.val[k], x.val[k], 3);
            }
        }
        FOUR_ROWS(vcvtq_f32_s32)
    }
    vst1q_f32(s, f0); vst1q_f32(s + 4, f1); vst1q_f32(s + 8, f2); vst1q_f32(s + 12, f3);
}
#define C4(t) vcvtq_n_f32_s32(t, 4)
/* MACs: 512; bytes: 72. */
void gemm_q4_4x4(int nb, float *s, const q4x4 *b, const q8x4 *a) {
    float32x4_t f0 = vdupq_n_f32(0), f1 = f0, f2 = f0, f3 = f0;
    int8x16_t m = vdupq_n_s8(-16);
    for (int i = 0; i < nb; i++) {
        float32x4_t ad = vcvt_f32_f16(vld1_f16(a[i].d)), bd = vcvt_f32_f16(vld1_f16(b[i].d));
        int32x4_t t0 = vdupq_n_s32(0), t1 = t0, t2 = t0, t3 = t0;
        uint8x16x4_t u = vld1q_u8_x4(b[i].qs);
        int8x16x4_t x = vld1q_s8_x4(a[i].qs), y = vld1q_s8_x4(a[i].qs + 64);
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            int8x16_t w = vreinterpretq_s8_u8(u.val[k]), lo = w << 4, hi = w & m;
            t0 = vdotq_laneq_s32(t0, lo, x.val[k], 0); t1 = vdotq_laneq_s32(t1, lo, x.val[k], 1);
            t2 = vdotq_laneq_s32(t2, lo, x.val[k], 2); t3 = vdotq_laneq_s32(t3, lo, x.val[k], 3);
            t0 = vdotq_laneq_s32(t0, hi, y.val[k], 0); t1 = vdotq_laneq_s32(t1, hi, y.val[k], 1);
            t2 = vdotq_laneq_s32(t2, hi, y.val[k], 2); t3 = vdotq_laneq_s32(t3, hi, y.val[k], 3);
        }
        FOUR_ROWS(C4)
    }
    vst1q_f32(s, f0); vst1q_f32(s + 4, f1); vst1q_f32(s + 8, f2); vst1q_f32(s + 12, f3);
}
#ifdef __ARM_FEATURE_MATMUL_INT8
/* Four rows, four columns by i8mm. MACs: 512; bytes: 136. */
void gemm_q8_4x8_i8mm(int nb, float *s, const q8x4 *b, const q8x4 *a) {
    float32x4_t f0 = vdupq_n_f32(0), f1 = f0, f2 = f0, f3 = f0;
    for (int i = 0; i < nb; i++) {
        int32x4_t c0 = vdupq_n_s32(0), c1 = c0, c2 = c0, c3 = c0;
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            int8x16_t a01 = vld1q_s8(a[i].qs + 32 * k), a23 = vld1q_s8(a[i].qs + 32 * k + 16);
            int8x16_t b01 = vld1q_s8(b[i].qs + 32 * k), b23 = vld1q_s8(b[i].qs + 32 * k + 16);
            c0 = vmmlaq_s32(c0, a01, b01); c1 = vmmlaq_s32(c1, a01, b23);
            c2 = vmmlaq_s32(c2, a23, b01); c3 = vmmlaq_s32(c3, a23, b23);
        }
        int32x4_t t0 = vcombine_s32(vget_low_s32(c0), vget_low_s32(c1)), t1 = vcombine_s32(vget_high_s32(c0), vget_high_s32(c1));
        int32x4_t t2 = vcombine_s32(vget_low_s32(c2), vget_low_s32(c3)), t3 = vcombine_s32(vget_high_s32(c2), vget_high_s32(c3));
        float32x4_t ad = vcvt_f32_f16(vld1_f16(a[i].d)), bd = vcvt_f32_f16(vld1_f16(b[i].d));
        FOUR_ROWS(vcvtq_f32_s32)
    }
    vst1q_f32(s, f0); vst1q_f32(s + 4, f1); vst1q_f32(s + 8, f2); vst1q_f32(s + 12, f3);
}
#endif
