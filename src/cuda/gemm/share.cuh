// Tiles that several workers compute, each a part of k: their accumulators meet in memory.
#pragma once

#include "cuda/gemm/schedule.cuh"

namespace octet::cuda {

// This team's accumulators of a shared tile. True for the last team to arrive: it gets all the
// accumulators.
//
// A team is the threads whose accumulators form one rectangle of outputs: a block, or a warpgroup.
// It has kThreads of them, in which this one has rank(); kTeams of them form a worker, in which
// this one has number(); sync() lets its threads meet, and `arrived` is a word of shared memory of
// its own. A worker has at most two parts of tiles, one that begins inside a tile and one that
// begins with it, so it has two places for its partial accumulators.
template <class Team, int kRows, int kColumns>
__device__ bool share_accumulators(const GemmParams& params, const Work& work, const Team& team,
                                   int32_t (&acc)[kRows][kColumns][4]) {
  constexpr int kVectors = kRows * kColumns;
  constexpr int kTeamVectors = kVectors * Team::kThreads;
  using Workers = cuda::Workers<Team::kBlocksPerWorker>;
  const int index = work.tile - params.whole_tiles;
  const auto steps = static_cast<uint32_t>(work.k_end - work.k_begin);
  const auto all = static_cast<uint32_t>(params.k_steps);
  uint32_t* arrivals = params.arrivals + index * Team::kTeams + team.number();
  auto* vectors = reinterpret_cast<int4*>(&acc[0][0][0]);
  const auto place = [&](uint32_t worker, bool begins) {
    const int64_t part = 2 * worker + (begins ? 1 : 0);
    return reinterpret_cast<int4*>(params.partials) +
           (part * Team::kTeams + team.number()) * kTeamVectors + team.rank();
  };

  // If all others have arrived, nobody will read ours. Worth a look (a trip to L2) if storing takes
  // longer than looking.
  constexpr bool kLook = kTeamVectors > 128 * 128 / 4;
  if constexpr (kLook) {
    team.sync();  // `arrived` of the last shared tile has been read
    if (team.rank() == 0) {
      *team.arrived = *static_cast<volatile uint32_t*>(arrivals);
      __threadfence();  // for the whole team: whoever has arrived, its accumulators are there
    }
    team.sync();
  }
  if (!kLook || *team.arrived + steps != all) {
    int4* ours = place(Workers::self(), work.k_begin == 0);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) __stcg(ours + i * Team::kThreads, vectors[i]);
    __threadfence();
    team.sync();
    if (team.rank() == 0) {
      *team.arrived = atomicAdd(arrivals, steps);
      __threadfence();
    }
    team.sync();
    if (*team.arrived + steps != all) return false;
  }
  if (team.rank() == 0) *arrivals = 0;

  const SharedSteps shared(params, Workers::count());
  const uint32_t first_step = index * all;
  const uint32_t last_worker = shared.worker_of(first_step + all - 1);
  const auto theirs = [&](uint32_t worker) -> const int4* {  // null when there is nothing to add
    const uint32_t begin = shared.first_of(worker);
    const bool has_acc = worker != Workers::self() && begin != shared.first_of(worker + 1);
    return has_acc ? place(worker, begin <= first_step) : nullptr;
  };
  const auto add = [](int4& to, const int4& more) {
    to.x += more.x, to.y += more.y, to.z += more.z, to.w += more.w;
  };
  uint32_t worker = shared.worker_of(first_step);
  if constexpr (kVectors <= 16) {
    // A chain of trips to L2, so the accumulators of small tiles come from two workers at a time.
    for (; worker < last_worker; worker += 2) {
      const int4* first = theirs(worker);
      const int4* second = theirs(worker + 1);
      int4 more[2][kVectors];
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        more[0][i] = first != nullptr ? __ldcg(first + i * Team::kThreads) : int4{};
        more[1][i] = second != nullptr ? __ldcg(second + i * Team::kThreads) : int4{};
      }
#pragma unroll
      for (int i = 0; i < kVectors; ++i) add(vectors[i], more[0][i]), add(vectors[i], more[1][i]);
    }
  }
  for (; worker <= last_worker; ++worker) {
    const int4* from = theirs(worker);
    if (from == nullptr) continue;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) add(vectors[i], __ldcg(from + i * Team::kThreads));
  }
  return true;
}

}  // namespace octet::cuda
