// Sixteen f32 lanes in the compiler's vector types: one register with AVX-512, a pair of registers
// with AVX2, a pair of pairs otherwise. Vector types wider than a register are not used, because
// GCC keeps them in memory and compares them lane by lane. The files of each instruction set
// include this file inside an unnamed namespace.

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif
typedef float FloatRegister __attribute__((vector_size(kRegisterBytes)));
typedef std::int32_t IntRegister __attribute__((vector_size(kRegisterBytes)));
typedef std::uint32_t BitRegister __attribute__((vector_size(kRegisterBytes)));
typedef std::uint16_t HalfRegister __attribute__((vector_size(kRegisterBytes / 2)));

template <class Half>
struct Pair {
  Half lo, hi;
  /// Reinterprets the bits as another type.
  template <class Other>
  explicit operator Pair<Other>() const {
    return {(Other)lo, (Other)hi};
  }
};

#define LANES_OPERATOR(op)                                                              \
  template <class Half>                                                                 \
  INLINE auto operator op(const Pair<Half>& a, const Pair<Half>& b) {                   \
    return Pair<decltype(a.lo op b.lo)>{a.lo op b.lo, a.hi op b.hi};                    \
  }                                                                                     \
  template <class Half, class One, class = std::enable_if_t<std::is_arithmetic_v<One>>> \
  INLINE auto operator op(const Pair<Half>& a, One b) {                                 \
    return Pair<decltype(a.lo op b)>{a.lo op b, a.hi op b};                             \
  }                                                                                     \
  template <class Half, class One, class = std::enable_if_t<std::is_arithmetic_v<One>>> \
  INLINE auto operator op(One a, const Pair<Half>& b) {                                 \
    return Pair<decltype(a op b.lo)>{a op b.lo, a op b.hi};                             \
  }
LANES_OPERATOR(+)
LANES_OPERATOR(-)
LANES_OPERATOR(*)
LANES_OPERATOR(/)
LANES_OPERATOR(&)
LANES_OPERATOR(|)
LANES_OPERATOR(<<)
LANES_OPERATOR(>>)
LANES_OPERATOR(<)
LANES_OPERATOR(<=)
LANES_OPERATOR(>)
LANES_OPERATOR(>=)
#undef LANES_OPERATOR
template <class Half>
INLINE Pair<Half> operator-(const Pair<Half>& a) {
  return {-a.lo, -a.hi};
}
template <class Half, class Other>
INLINE Pair<Half>& operator+=(Pair<Half>& a, const Other& b) {
  return a = a + b;
}

#if defined(__AVX512F__)
template <class Register>
using SixteenOf = Register;
#elif defined(__AVX2__)
template <class Register>
using SixteenOf = Pair<Register>;
#else
template <class Register>
using SixteenOf = Pair<Pair<Register>>;
#endif
using Lanes = SixteenOf<FloatRegister>;
using IntLanes = SixteenOf<IntRegister>;
using BitLanes = SixteenOf<BitRegister>;

// Every operation below is defined for a register, and recursively for a pair.

INLINE void read(const float* p, FloatRegister& x) {
  __builtin_memcpy(&x, p, sizeof x);
}
INLINE void read(const std::int32_t* p, IntRegister& x) {
  __builtin_memcpy(&x, p, sizeof x);
}
INLINE void read(const Bf16* p, FloatRegister& x) {
  HalfRegister half;
  __builtin_memcpy(&half, p, sizeof half);
  const BitRegister bits = __builtin_convertvector(half, BitRegister) << 16;
  x = (FloatRegister)bits;
}
INLINE void write(float* p, FloatRegister x) {
  __builtin_memcpy(p, &x, sizeof x);
}
// Rounds to nearest, ties to even. NaNs are not preserved; the trainer detects them in the loss and the
// gradient's norm, which are f32.
INLINE void write(Bf16* p, FloatRegister x) {
#if defined(__AVX512BF16__)
  const __m256bh half = _mm512_cvtneps_pbh((__m512)x);
#else
  BitRegister bits = (BitRegister)x;
  bits += 0x7fffu + ((bits >> 16) & 1u);
  const HalfRegister half = __builtin_convertvector(bits >> 16, HalfRegister);
#endif
  __builtin_memcpy(p, &half, sizeof half);
}
INLINE FloatRegister choose(IntRegister condition, FloatRegister yes, FloatRegister no) {
  return condition ? yes : no;
}
INLINE FloatRegister root_of(FloatRegister x) {
#if defined(__AVX512F__)
  return (FloatRegister)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
  return (FloatRegister)_mm256_sqrt_ps((__m256)x);
#else
  for (int i = 0; i < kRegisterBytes / 4; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
template <class From, class Half>
INLINE void read(const From* p, Pair<Half>& x) {
  read(p, x.lo);
  read(p + sizeof(Half) / sizeof(float), x.hi);
}
template <class To, class Half>
INLINE void write(To* p, const Pair<Half>& x) {
  write(p, x.lo);
  write(p + sizeof(Half) / sizeof(float), x.hi);
}
template <class Condition, class Half>
INLINE Pair<Half> choose(const Pair<Condition>& c, const Pair<Half>& yes, const Pair<Half>& no) {
  return {choose(c.lo, yes.lo, no.lo), choose(c.hi, yes.hi, no.hi)};
}
template <class Half>
INLINE Pair<Half> root_of(const Pair<Half>& x) {
  return {root_of(x.lo), root_of(x.hi)};
}

template <class T>
INLINE Lanes load(const T* p) {
  Lanes x;
  read(p, x);
  return x;
}
template <class T>
INLINE void store(T* p, Lanes x) {
  write(p, x);
}
INLINE Lanes splat(float x) {
  return x - Lanes{};
}
INLINE IntLanes splat_int(std::int32_t x) {
  return x - IntLanes{};
}
INLINE IntLanes lane_index() {
  static constexpr std::int32_t kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  IntLanes x;
  read(kIndex, x);
  return x;
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

INLINE Lanes larger(Lanes a, Lanes b) {
  return choose(a > b, a, b);
}
INLINE Lanes smaller(Lanes a, Lanes b) {
  return choose(a < b, a, b);
}

INLINE float lane_of(Lanes x, int lane) {
  float t[16];
  store(t, x);
  return t[lane];
}
// Adds the lanes pairwise, so the order of the sum does not depend on the register width.
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

// Computes e^x as 2^n 2^f with f in [-1/2, 1/2]. 2^f is the Taylor polynomial of degree 6 in f ln
// 2; the relative error is below 2e-7. Arguments are clamped to [-87, 88], so results are finite
// and at least e^-87 = 1e-38.
INLINE Lanes exp_of(Lanes x) {
  x = larger(splat(-87.0f), x);
  x = smaller(splat(88.0f), x);
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
