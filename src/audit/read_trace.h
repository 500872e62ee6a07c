// Files into traces: read_trace(), and a reader for each format. All of them throw Error with one
// sentence for a file that is damaged, cut off, or has nothing to tell.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

// By its content, not by its name: a PyTorch profiler trace (Chrome JSON, also gzip), a profile of
// ONNX Runtime or XLA, Nsight Compute or Nsight Systems CSV, an Nsight Systems SQLite file, verbose
// lines of oneDNN, a report of Octet, a log of ComfyUI or vLLM; JSON also between the fences of a
// Markdown text. `path` "-" is standard input (anything but SQLite). Throws Error for a file that
// is none of these. progress(done, total) in bytes of the file; may be empty.
Trace read_trace(const std::string& path,
                 const std::function<void(uint64_t, uint64_t)>& progress = {});

// read_trace() for bytes: every format except SQLite, which is not a stream.
Trace read_stream(ByteStream& bytes);

// Of PyTorch's profiler: JSON in the form of chrome://tracing, of any size; an object with
// "traceEvents" or a bare array of events, their keys in any order; of two equal keys the last
// counts. Ops of the host, ranges, kernels and transfers are kept, everything else is passed over.
// The profiles of ONNX Runtime (nodes) and of XLA (kernels on the streams of a GPU) have that form.
Trace read_chrome_trace(ByteStream& bytes);

// `ncu --csv`, one row for each kernel and metric, and `ncu --csv --page raw`, one row for each
// kernel: kernels with their durations (0 where none was measured) and, where they were, the
// instructions or operations of tensor cores by type. Lines of the program that was profiled may
// stand before.
bool is_nsight_compute_header(const std::vector<std::string>& cells);
Trace read_nsight_compute_csv(ByteStream& bytes);

// CSV of `nsys stats`, or the tables that it prints: the first table of kernels in the text
// (cuda_gpu_kern_sum, cuda_gpu_kern_gb_sum, cuda_gpu_sum, cuda_gpu_trace, cuda_kern_exec_trace, and
// the names that these had before), and the sums of transfers where that has none. Tables of other
// reports are passed over.
bool is_nsight_systems_header(const std::vector<std::string>& cells);
Trace read_nsight_systems_csv(ByteStream& bytes);

// What `print(profiler.key_averages().table())` of PyTorch prints: kernels with their sums; where
// there are none, ops. Shapes are read, types are not told. A second table is passed over.
bool is_torch_table_header(const std::vector<std::string>& cells);
Trace read_torch_table(ByteStream& bytes);

// Sums of kernels in Markdown, as SGLang's analysis of a trace writes them ("Kernel", "GPU time",
// "Launches"), and the tree that vLLM's layerwise profiler prints. The first table counts.
bool is_pipe_table_header(std::string_view line);
Trace read_pipe_table(ByteStream& bytes);

// What perfstats.py makes of ONNX Runtime's profile: operators with their sums.
bool is_perfstats_header(const std::vector<std::string>& cells);
Trace read_perfstats(ByteStream& bytes);

// rocprofv3 of AMD: kernels of its JSON, in their order, and its CSV (kernel_trace, or the sums of
// kernel_stats, which rocprof --stats has as well).
bool is_rocprof_header(const std::vector<std::string>& cells);
Trace read_rocprof_csv(ByteStream& bytes);
bool is_rocprof_json(std::string_view head);
Trace read_rocprof_json(ByteStream& bytes);

// What TensorRT's engine inspector says of an engine's layers (trtexec --exportLayerInfo): tactics,
// with the types and shapes of their inputs; nothing was measured. Of a profile (--exportProfile),
// which names layers alone, an Error says what to give instead.
bool is_tensorrt_json(std::string_view head);
Trace read_tensorrt_json(ByteStream& bytes);

// What oneDNN prints with ONEDNN_VERBOSE=1: each primitive that ran, with the types and sizes of
// its operands. A line of it tells that a text has them.
bool is_onednn_line(std::string_view line);
Trace read_onednn_verbose(ByteStream& bytes);

// The SQLite file of `nsys export` (or beside the report of `nsys profile --stats`): kernels and
// transfers, and ranges of NVTX, with the ones that launched kernels.
Trace read_nsight_systems_sqlite(const std::string& path);

// What Octet's own commands write with --json. Of `compare` the second side, and of `certify` the
// checkpoint: what was judged. Whether a JSON text is one, its begin tells (or, where it is short,
// the rest) by a schema of Octet's.
bool is_octet_report(std::string_view head);
Trace read_octet_report(ByteStream& bytes);

// Logs of programs that say which kernels they chose: lines that log_line_for() knows; equal
// meanings are counted. A file of any other kind has none of them.
Trace read_run_log(ByteStream& bytes);

}  // namespace octet::audit
