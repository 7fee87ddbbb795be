// Stands in for the generated prelude where a template is opened in an editor. Never part of a generated source.
#pragma once
#include "types.cuh"

using ValueT = float;
using XT = float;
using YT = float;
using AccumT = float;
using OffsetT = uint32_t;
using IndexT = uint32_t;
// alpha and beta as a kernel is given them; with an epilogue BetaT is what that takes beside the row.
using AlphaT = AccumT;
using BetaT = AccumT;

constexpr Coefficient kAlpha = Coefficient::kAny;
constexpr Coefficient kBeta = Coefficient::kAny;

constexpr int kThreadsPerBlock = 256;
constexpr int kMirrorSign = 1;
constexpr bool kMirrorConjugates = false;
