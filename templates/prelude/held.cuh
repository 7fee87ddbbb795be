// An entry of x as registers hold it until it is used: one of 2 bytes has a register of its own, and takes no instructions to
// share one.
template <typename T, int kBytes = sizeof(T)>
struct Held {
  T value;

  __device__ __forceinline__ void empty() { value = T(0); }
  __device__ __forceinline__ Held& operator=(T entry) {
    value = entry;
    return *this;
  }
  __device__ __forceinline__ T entry() const { return value; }
};
template <typename T>
struct Held<T, 2> {
  uint32_t bits;

  __device__ __forceinline__ void empty() { bits = 0; }
  __device__ __forceinline__ Held& operator=(T entry) {
    bits = *reinterpret_cast<const uint16_t*>(&entry);
    return *this;
  }
  __device__ __forceinline__ T entry() const {
    const uint16_t half = uint16_t(bits);
    return *reinterpret_cast<const T*>(&half);
  }
};
