"""cmake/portable.cmake: a shared library linked by it needs only glibc 2.28, and works.

Ten seconds: a small library is compiled, which calls everything that is replaced there.
"""

from __future__ import annotations

import ctypes
import math
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(probe CXX)
set(CMAKE_CXX_STANDARD 20)
include({repository}/cmake/portable.cmake)
add_library(probe MODULE probe.cpp)
target_link_libraries(probe PRIVATE octet_fmt)
octet_make_portable(probe)
"""
SOURCE = """
#include <fmt/format.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" {
double probe_math(double x) { return exp(x) + exp2(x) + log(x) + log2(x) + pow(x, x); }
long probe_sizes(const char* path) {
  struct stat followed{}, link{};
  if (stat(path, &followed) != 0 || lstat(path, &link) != 0) return -1;
  const auto size = std::filesystem::file_size(path);
  FILE* file = fopen(path, "r");
  struct stat opened{};
  const int failed = fstat(fileno(file), &opened);
  fclose(file);
  return failed == 0 && size == size_t(followed.st_size) && opened.st_ino == followed.st_ino &&
         S_ISLNK(link.st_mode) ? followed.st_size : -2;
}
// Waits that long, by the steady clock, for something that does not come.
bool probe_wait(int milliseconds) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  return never.wait_for(lock, std::chrono::milliseconds(milliseconds)) == std::cv_status::timeout;
}
int probe_threads() {
  static std::once_flag once;
  int calls = 0, sum = 0;
  auto shared = std::make_shared<int>(20);
  for (int i = 0; i < 3; ++i) std::call_once(once, [&] { ++calls; });
  std::thread([&sum, shared] { sum = *shared; }).join();
  std::random_device device;
  return sum + calls + (device() == device() && device() == device());
}
int probe_runtime(const char* digits) {  // what CUDA's runtime takes from glibc
  void* self = dlopen(nullptr, RTLD_NOW);
  if (self == nullptr || dlsym(self, "malloc") == nullptr || dlclose(self) != 0) return -1;
  pthread_rwlock_t lock;
  pthread_spinlock_t spin;
  sem_t semaphore;
  if (pthread_rwlock_init(&lock, nullptr) != 0 || pthread_spin_init(&spin, 0) != 0) return -2;
  if (pthread_rwlock_wrlock(&lock) != 0 || pthread_rwlock_tryrdlock(&lock) == 0) return -3;
  if (pthread_spin_lock(&spin) != 0 || pthread_spin_trylock(&spin) == 0) return -4;
  if (sem_init(&semaphore, 0, 1) != 0 || sem_wait(&semaphore) != 0) return -5;
  if (sem_trywait(&semaphore) == 0 || shm_unlink("/octet-none") == 0) return -6;
  return int(strtol(digits, nullptr, 10));
}
int probe_format(double x, char* out) {
  try {
    (void)fmt::vformat("{:d}", fmt::make_format_args("text"));
  } catch (const std::runtime_error&) {
    return int(fmt::format("{} {:.3f} {:>5} {}", x, x, "ab", float(x)).copy(out, 63));
  }
  return -1;
}
}
"""


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    if not all(map(shutil.which, ("cmake", "g++", "objdump", "readelf"))):
        pytest.skip("a compiler or binutils is missing")
    folder = tmp_path_factory.mktemp("probe")
    (folder / "CMakeLists.txt").write_text(PROJECT.format(repository=REPOSITORY))
    (folder / "probe.cpp").write_text(SOURCE)
    run("cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build")
    return folder / "build" / "libprobe.so"


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
def test_what_it_needs(library: Path):
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library))
    assert {name for name in needed if not name.startswith("ld-linux")} <= {
        *("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"), "libgcc_s.so.1"}
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("its symbols are those of this machine's glibc")
    symbols = run("objdump", "-T", library)
    versions = [tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)]
    assert max(versions) <= (2, 28), [
        line for line in symbols.splitlines() if re.search(r"GLIBC_2\.(29|[3-9]\d)", line)]
    assert "GLIBCXX" not in symbols


def test_what_is_replaced_works(library: Path, tmp_path: Path):
    probe = ctypes.CDLL(str(library))
    probe.probe_math.restype, probe.probe_math.argtypes = ctypes.c_double, [ctypes.c_double]
    for x in (0.5, 1.0, 2.75, 30.0):
        assert probe.probe_math(x) == math.exp(x) + 2**x + math.log(x) + math.log2(x) + x**x
    probe.probe_sizes.restype = ctypes.c_long
    (tmp_path / "file").write_bytes(b"x" * 321)
    (tmp_path / "link").symlink_to("file")
    assert probe.probe_sizes(bytes(tmp_path / "link")) == 321
    assert probe.probe_sizes(bytes(tmp_path / "none")) == -1
    assert probe.probe_threads() == 21
    assert probe.probe_runtime(b"77") == 77
    out = ctypes.create_string_buffer(64)
    probe.probe_format.argtypes = [ctypes.c_double, ctypes.c_char_p]
    assert probe.probe_format(0.1, out) > 0 and out.value == b"0.1 0.100    ab 0.1"


def test_waits_end_neither_early_nor_never(library: Path):
    probe = ctypes.CDLL(str(library))
    probe.probe_wait.restype = ctypes.c_bool
    for milliseconds in (1, 250):
        start = time.monotonic()
        assert probe.probe_wait(milliseconds)
        assert time.monotonic() - start >= milliseconds / 1000
