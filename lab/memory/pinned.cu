// How fast the host gets memory that a GPU copies from at full speed, and what that copies at:
// cudaMallocHost, and pages of its own that are touched by many threads and then registered.
//   nvcc -O2 -std=c++17 -o pinned pinned.cu && ./pinned [GB]
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
void parallel(int threads, size_t count, void (*work)(void*, size_t), void* data) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([=] {
      for (size_t i = static_cast<size_t>(t); i < count; i += static_cast<size_t>(threads)) {
        work(data, i);
      }
    });
  }
  for (auto& thread : all) thread.join();
}
struct Slabs {
  std::vector<char*> at;
  size_t bytes;
};

}  // namespace

int main(int argc, char** argv) {
  const size_t gigabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8;
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  size_t free_before = 0, total = 0;
  double begun = now();
  check(cudaFree(nullptr), "context");
  check(cudaMemGetInfo(&free_before, &total), "memory");
  std::printf("context %.2f s, %.0f MB of %.0f MB in use; %d threads\n", now() - begun,
              (total - free_before) * 1e-6, total * 1e-6, threads);
  const size_t slab = size_t{256} << 20, count = gigabytes * 4;
  char* device = nullptr;
  check(cudaMalloc(&device, 4 * slab), "device memory");
  cudaStream_t up, down;
  cudaStreamCreate(&up);
  cudaStreamCreate(&down);
  const auto copies = [&](const Slabs& slabs, const char* name) {
    for (int turn = 0; turn < 2; ++turn) {
      begun = now();
      for (char* at : slabs.at) {
        check(cudaMemcpyAsync(device, at, slab, cudaMemcpyHostToDevice, up), "copy");
      }
      cudaDeviceSynchronize();
    }
    const double host_to_device = now() - begun;
    begun = now();
    for (char* at : slabs.at) {
      check(cudaMemcpyAsync(at, device + slab, slab, cudaMemcpyDeviceToHost, down), "copy");
    }
    cudaDeviceSynchronize();
    const double device_to_host = now() - begun;
    begun = now();
    for (size_t i = 0; i < slabs.at.size(); ++i) {
      char* at = slabs.at[i];
      if (i % 2 == 0) check(cudaMemcpyAsync(device, at, slab, cudaMemcpyHostToDevice, up), "copy");
      if (i % 2 == 1) {
        check(cudaMemcpyAsync(at, device + slab, slab, cudaMemcpyDeviceToHost, down), "copy");
      }
    }
    cudaDeviceSynchronize();
    const double bytes = static_cast<double>(slab * slabs.at.size()) * 1e-9;
    std::printf("  %s: to the device %.1f GB/s, from it %.1f, both at once %.1f in all\n", name,
                bytes / host_to_device, bytes / device_to_host, bytes / (now() - begun));
  };
  {
    Slabs slabs{{}, slab};
    begun = now();
    for (size_t i = 0; i < count; ++i) {
      void* at = nullptr;
      check(cudaMallocHost(&at, slab), "pinned");
      slabs.at.push_back(static_cast<char*>(at));
    }
    std::printf("cudaMallocHost: %.2f GB/s\n", gigabytes * 1.0737 / (now() - begun));
    copies(slabs, "cudaMallocHost");
    for (char* at : slabs.at) cudaFreeHost(at);
  }
  for (const int together : {4, threads}) {
    static Slabs slabs;
    slabs = {std::vector<char*>(count), slab};
    begun = now();
    parallel(together, count, [](void*, size_t i) {
      void* at = nullptr;
      check(cudaMallocHost(&at, slabs.bytes), "pinned");
      slabs.at[i] = static_cast<char*>(at);
    }, nullptr);
    std::printf("cudaMallocHost by %d threads: %.2f GB/s\n", together,
                gigabytes * 1.0737 / (now() - begun));
    for (char* at : slabs.at) cudaFreeHost(at);
  }
  for (const bool huge : {false, true}) {
    for (const bool together : {false, true}) {
      static Slabs slabs;
      slabs = {{}, slab};
      begun = now();
      const size_t all = count * slab;
      void* memory = mmap(nullptr, all + (size_t{2} << 20), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      char* base = reinterpret_cast<char*>(
          (reinterpret_cast<size_t>(memory) + (size_t{2} << 20) - 1) & ~((size_t{2} << 20) - 1));
      if (huge) madvise(base, all, MADV_HUGEPAGE);
      for (size_t i = 0; i < count; ++i) slabs.at.push_back(base + i * slab);
      parallel(threads, all >> 21, [](void* at, size_t i) {
        char* page = static_cast<char*>(at) + (i << 21);
        for (size_t byte = 0; byte < size_t{2} << 20; byte += 4096) page[byte] = 1;
      }, base);
      const double touched = now() - begun;
      if (together) {
        parallel(threads, count, [](void*, size_t i) {
          check(cudaHostRegister(slabs.at[i], slabs.bytes, cudaHostRegisterDefault), "register");
        }, nullptr);
      } else {
        for (char* at : slabs.at) {
          check(cudaHostRegister(at, slab, cudaHostRegisterDefault), "register");
        }
      }
      std::printf("own pages%s: touched at %.2f GB/s, registered by %d threads: in all %.2f GB/s\n",
                  huge ? ", huge" : "", gigabytes * 1.0737 / touched, together ? threads : 1,
                  gigabytes * 1.0737 / (now() - begun));
      copies(slabs, huge ? "huge pages" : "pages");
      begun = now();
      for (char* at : slabs.at) cudaHostUnregister(at);
      munmap(memory, all + (size_t{2} << 20));
      std::printf("  given back in %.2f s\n", now() - begun);
    }
  }
  // What streams and graphs of 35 pieces take.
  check(cudaMemGetInfo(&free_before, &total), "memory");
  return 0;
}
