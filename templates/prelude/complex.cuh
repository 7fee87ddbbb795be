// Complex numbers as memory has them: the real part, then the imaginary one. Products are those of the parts, with one
// rounding for each addition, in the order in which they stand here; infinite parts are treated like others.
__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <typename Part>
struct alignas(2 * sizeof(Part)) Complex {
  Part re, im;

  Complex() = default;
  __device__ __forceinline__ constexpr Complex(Part re, Part im) : re(re), im(im) {}
  __device__ __forceinline__ constexpr Complex(int real) : re(Part(real)), im(0) {}
  template <typename Real>
  __device__ __forceinline__ explicit Complex(Real real) : re(Part(real)), im(0) {}
  template <typename Other>
  __device__ __forceinline__ explicit Complex(Complex<Other> other) : re(Part(other.re)), im(Part(other.im)) {}

  __device__ __forceinline__ Complex operator-() const { return {-re, -im}; }
  __device__ __forceinline__ Complex& operator+=(Complex b) {
    re += b.re;
    im += b.im;
    return *this;
  }
  friend __device__ __forceinline__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend __device__ __forceinline__ Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend __device__ __forceinline__ Complex operator*(Complex a, Complex b) {
    return {fused(a.re, b.re, -(a.im * b.im)), fused(a.re, b.im, a.im * b.re)};
  }
  friend __device__ __forceinline__ bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend __device__ __forceinline__ bool operator!=(Complex a, Complex b) { return !(a == b); }
};
using Complex32 = Complex<float>;
using Complex64 = Complex<double>;

template <typename Part>
__device__ __forceinline__ Complex<Part> multiply_add(Complex<Part> a, Complex<Part> b, Complex<Part> c) {
  return {fused(-a.im, b.im, fused(a.re, b.re, c.re)), fused(a.im, b.re, fused(a.re, b.im, c.im))};
}

// A coefficient that is real scales both parts, infinite ones too, as one that a kernel knows does.
template <typename Part>
__device__ __forceinline__ Complex<Part> scaled(Complex<Part> factor, Complex<Part> number) {
  return factor.im == 0 ? Complex<Part>(factor.re * number.re, factor.re * number.im) : factor * number;
}
template <typename Part>
__device__ __forceinline__ Complex<Part> scaled_add(Complex<Part> factor, Complex<Part> number, Complex<Part> sum) {
  if (factor.im != 0) return multiply_add(factor, number, sum);
  return {fused(factor.re, number.re, sum.re), fused(factor.re, number.im, sum.im)};
}

template <typename Part>
__device__ __forceinline__ Complex<Part> conjugate(Complex<Part> number) {
  return {number.re, -number.im};
}

// Both parts come in one load.
__device__ __forceinline__ Complex32 complex_of(float2 parts) { return {parts.x, parts.y}; }
__device__ __forceinline__ Complex64 complex_of(double2 parts) { return {parts.x, parts.y}; }
__device__ __forceinline__ const float2* parts_of(const Complex32* from) {
  return reinterpret_cast<const float2*>(from);
}
__device__ __forceinline__ const double2* parts_of(const Complex64* from) {
  return reinterpret_cast<const double2*>(from);
}
template <typename Part>
__device__ __forceinline__ Complex<Part> __ldg(const Complex<Part>* from) {
  return complex_of(__ldg(parts_of(from)));
}
template <typename Part>
__device__ __forceinline__ Complex<Part> __ldcs(const Complex<Part>* from) {
  return complex_of(__ldcs(parts_of(from)));
}
template <typename Part>
__device__ __forceinline__ Complex<Part> __ldcg(const Complex<Part>* from) {
  return complex_of(__ldcg(parts_of(from)));
}

template <typename Part>
__device__ __forceinline__ Complex<Part> __shfl_sync(uint32_t mask, Complex<Part> number, int lane, int width = 32) {
  return {__shfl_sync(mask, number.re, lane, width), __shfl_sync(mask, number.im, lane, width)};
}
template <typename Part>
__device__ __forceinline__ Complex<Part> __shfl_xor_sync(uint32_t mask, Complex<Part> number, int bits, int width = 32) {
  return {__shfl_xor_sync(mask, number.re, bits, width), __shfl_xor_sync(mask, number.im, bits, width)};
}
template <typename Part>
__device__ __forceinline__ Complex<Part> __shfl_up_sync(uint32_t mask, Complex<Part> number, uint32_t by, int width = 32) {
  return {__shfl_up_sync(mask, number.re, by, width), __shfl_up_sync(mask, number.im, by, width)};
}
template <typename Part>
__device__ __forceinline__ Complex<Part> __shfl_down_sync(uint32_t mask, Complex<Part> number, uint32_t by,
                                                          int width = 32) {
  return {__shfl_down_sync(mask, number.re, by, width), __shfl_down_sync(mask, number.im, by, width)};
}

// The parts are added one by one: nobody reads the sum before all are there.
template <typename Part>
__device__ __forceinline__ void atomicAdd(Complex<Part>* to, Complex<Part> number) {
  atomicAdd(&to->re, number.re);
  atomicAdd(&to->im, number.im);
}
