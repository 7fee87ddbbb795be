// Fixed-width integers (NVRTC has no <cstdint>) and what is known of alpha and beta when a kernel is generated.
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;

enum class Coefficient { kAny, kZero, kOne, kMinusOne };
