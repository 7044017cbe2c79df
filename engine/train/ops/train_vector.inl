// Sixteen f32 lanes in the compiler's own vector types: one register with AVX-512, two with AVX2,
// four without. Included into the files that are compiled once per instruction set, inside an
// unnamed namespace; knows pointers and lanes only.

typedef float Lanes __attribute__((vector_size(64)));
typedef std::int32_t IntLanes __attribute__((vector_size(64)));
typedef std::uint32_t BitLanes __attribute__((vector_size(64)));
typedef std::uint16_t HalfLanes __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))

INLINE Lanes splat(float x) {
  return Lanes{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}
INLINE IntLanes splat_int(std::int32_t x) {
  return IntLanes{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}
INLINE IntLanes lane_index() {
  return IntLanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

INLINE Lanes load(const float* p) {
  Lanes x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
INLINE Lanes load(const Bf16* p) {
  HalfLanes half;
  __builtin_memcpy(&half, p, sizeof half);
  const BitLanes bits = __builtin_convertvector(half, BitLanes) << 16;
  return (Lanes)bits;
}
INLINE void store(float* p, Lanes x) {
  __builtin_memcpy(p, &x, sizeof x);
}
// Round to nearest, ties to even. Training never stores a NaN it means to keep: the trainer checks
// the loss and the gradient's norm, which are f32.
INLINE void store(Bf16* p, Lanes x) {
#if defined(__AVX512BF16__)
  const __m256bh half = _mm512_cvtneps_pbh((__m512)x);
  __builtin_memcpy(p, &half, sizeof half);
#else
  BitLanes bits = (BitLanes)x;
  bits += 0x7fffu + ((bits >> 16) & 1u);
  const HalfLanes half = __builtin_convertvector(bits >> 16, HalfLanes);
  __builtin_memcpy(p, &half, sizeof half);
#endif
}

INLINE float load_one(const float* p) {
  return *p;
}
INLINE float load_one(const Bf16* p) {
  const std::uint32_t bits = std::uint32_t{p->bits} << 16;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
INLINE void store_one(float* p, float x) {
  *p = x;
}
INLINE void store_one(Bf16* p, float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  p->bits = static_cast<std::uint16_t>(bits >> 16);
}

INLINE Lanes select(IntLanes condition, Lanes yes, Lanes no) {
  return (Lanes)((condition & (IntLanes)yes) | (~condition & (IntLanes)no));
}
INLINE Lanes larger(Lanes a, Lanes b) {
  return a > b ? a : b;
}

// Pairwise, so that the order of the sum is the same whatever the register width.
INLINE float sum_of(Lanes x) {
  float t[16];
  store(t, x);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; i++) t[i] += t[i + width];
  }
  return t[0];
}
INLINE float max_of(Lanes x) {
  float t[16];
  store(t, x);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; i++) t[i] = t[i] > t[i + width] ? t[i] : t[i + width];
  }
  return t[0];
}

// e^x by 2^n 2^f with f in [-1/2, 1/2] and the Taylor polynomial of 2^f, degree 6 in f ln 2:
// relative error below 2e-7. Arguments are clamped to [-87, 88], so nothing becomes infinite and
// e^-87 = 1e-38 stands for everything smaller.
INLINE Lanes exp_of(Lanes x) {
  x = x < -87.0f ? splat(-87.0f) : x;
  x = x > 88.0f ? splat(88.0f) : x;
  const Lanes magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Lanes shifted = x * 1.44269504f + magic;
  const Lanes n = shifted - magic;
  const Lanes f = (x - n * 0.693145751953125f) - n * 1.42860677e-6f;
  Lanes p = f * (1.0f / 720) + 1.0f / 120;
  p = p * f + 1.0f / 24;
  p = p * f + 1.0f / 6;
  p = p * f + 0.5f;
  p = p * f + 1.0f;
  p = p * f + 1.0f;
  const IntLanes exponent = ((IntLanes)shifted - (IntLanes)magic) << 23;
  return (Lanes)((IntLanes)p + exponent);
}
