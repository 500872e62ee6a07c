#include "devices/select.h"

#include "base/env.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "cpu/cpu_backend.h"
#include "cpu/cpu_features.h"
#include "cpu/gemm/table.h"
#include "devices/gpu_text.h"
#include "ref/ref_backend.h"
#if OCTET_HAS_CUDA
#include "cuda/cuda_backend.h"
#include "cuda/cuda_devices.h"
#include "cuda/gemm/table.h"
#endif

namespace octet {
namespace {

std::vector<DeviceInfo> cuda_device_infos() {
#if OCTET_HAS_CUDA
  const CudaDevices found = find_cuda_devices();
  if (!found.problem.empty()) {
    return {{.name = "cuda",
             .description = fmt::format("built with CUDA {}", found.runtime),
             .unavailable = found.problem}};
  }
  std::vector<DeviceInfo> infos;
  for (const CudaDevice& device : found.devices) {
    DeviceInfo info;
    info.name = fmt::format("cuda:{}", device.index);
    info.description = fmt::format("{}, {} multiprocessors, {:.1f} GB, driver for CUDA {}",
                                   device.name, device.multiprocessors,
                                   static_cast<double>(device.memory_bytes) * 1e-9, found.driver);
    info.features = {
        fmt::format("sm_{}{}", device.major, device.minor),
        fmt::format("{} KB shared memory per block", device.shared_bytes_per_block / 1024)};
    info.unavailable = why_unsupported(device.major, device.minor);
    if (info.unavailable.empty()) info.unavailable = cuda::why_no_kernels(device.index);
    if (info.unavailable.empty()) {
      size_t wgmma = 0, mma = 0;  // tiles that fit its shared memory
      for (const cuda::GemmRow& row : cuda::gemm_rows()) {
        const auto needed = static_cast<uint64_t>(row.shared_bytes);
        if (needed <= device.shared_bytes_per_block) ++(row.hopper ? wgmma : mma);
      }
      info.int8_kernel = gpu_kernel_text(device.major, device.minor, wgmma, mma);
    }
    infos.push_back(std::move(info));
  }
  return infos;
#else
  return {{.name = "cuda", .unavailable = "this build has no CUDA; build it where nvcc is"}};
#endif
}

// `name`: "cuda:<number>", of a device that was found.
std::unique_ptr<Backend> make_cuda([[maybe_unused]] const std::string& name,
                                   [[maybe_unused]] const DeviceRequest& request) {
#if OCTET_HAS_CUDA
  CudaOptions options;
  options.device = std::stoi(name.substr(name.find(':') + 1));
  options.threads = request.threads;
  options.stream = request.stream;
  options.tune = request.tune;
  options.refines = request.refines;
  options.memory_limit = request.memory_limit;
  options.force_kernel = env::force_kernel().value_or("");
  return make_cuda_backend(options);
#else
  return nullptr;
#endif
}

std::unique_ptr<Backend> make_cpu(const DeviceRequest& request) {
  return make_cpu_backend(
      {.threads = request.threads, .force_kernel = env::force_kernel().value_or("")});
}

}  // namespace

std::vector<DeviceInfo> find_devices() {
  const int cores = physical_cores();
  DeviceInfo cpu_info;
  cpu_info.name = "cpu";
  cpu_info.description =
      fmt::format("{}, {} core{}", cpu::cpu_model(), cores, cores == 1 ? "" : "s");
  try {
    cpu_info.int8_kernel = cpu::select_micro_kernel(env::force_kernel().value_or("")).name;
  } catch (const Error& error) {  // a wrong OCTET_FORCE_KERNEL: this list is where to look it up
    cpu_info.unavailable = error.what();
  }
  cpu_info.features = cpu::feature_names(cpu::cpu_features());

  std::vector<DeviceInfo> infos = cuda_device_infos();
  infos.push_back(std::move(cpu_info));
  infos.push_back({.name = "ref",
                   .description = "plain loops, the definition of every result",
                   .int8_kernel = "ref"});
  return infos;
}

std::vector<std::string> device_list(const std::string& text) {
  std::vector<std::string> devices;
  size_t begin = 0;
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',', begin)) {
    devices.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  devices.push_back(text.substr(begin));
  if (devices.size() == 1) return devices;
  const auto kind_of = [](const std::string& device) { return device.substr(0, device.find(':')); };
  for (const std::string& device : devices) {
    check_value(device == "ref" || device == "cpu" || device.starts_with("cuda:"), "device",
                "device {}: a list names devices as ref, cpu or cuda:<number>, such as "
                "cuda:0,cuda:1",
                text);
  }
  check_value(devices.size() == 2, "device",
              "device {}: a list of {}, expected one device, or two that render a picture together",
              text, devices.size());
  check_value(kind_of(devices[0]) == kind_of(devices[1]), "device",
              "device {}: expected two of a kind, since others do not round alike", text);
  return devices;
}

std::unique_ptr<Backend> select_backend(const DeviceRequest& request) {
  check_value(request.device.find(',') == request.device.npos, "device",
              "device {}: expected one device; two render pictures together, and nothing else",
              request.device);
  if (request.device == "ref") return make_ref_backend(request.threads);
  if (request.device == "cpu") return make_cpu(request);
  const std::vector<DeviceInfo> gpus = cuda_device_infos();
  if (request.device == "auto") {
    for (const DeviceInfo& gpu : gpus) {
      if (gpu.unavailable.empty()) return make_cuda(gpu.name, request);
    }
    log::debug("device auto: cpu, because {}", gpus.front().unavailable);
    return make_cpu(request);
  }
  if (request.device == "cuda" || request.device.rfind("cuda:", 0) == 0) {
    for (const DeviceInfo& gpu : gpus) {
      if (request.device != "cuda" && gpu.name != request.device && gpu.name != "cuda") continue;
      const bool is_last = &gpu == &gpus.back();
      if (request.device == "cuda" && !gpu.unavailable.empty() && !is_last) continue;
      check(gpu.unavailable.empty(), "device {}: {}; use `device` cpu", request.device,
            gpu.unavailable);
      return make_cuda(gpu.name, request);
    }
    fail("device {}: there are {} GPUs, cuda:0 to cuda:{}", request.device, gpus.size(),
         gpus.size() - 1);
  }
  check_value(false, "device", "device {}: expected auto, ref, cpu, cuda or cuda:<number>",
              request.device);
  return nullptr;
}

}  // namespace octet
