// octet bench: the commands below it.
#include "commands.h"

namespace octet::cli {

void add_bench(CLI::App& program, CommonFlags& flags) {
  CLI::App* bench = program.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  add_bench_gemm(*bench, flags);
  add_bench_linear(*bench, flags);
  add_bench_quantize(*bench, flags);
  add_bench_step(*bench, flags);
  add_bench_e2e(*bench, flags);
}

}  // namespace octet::cli
