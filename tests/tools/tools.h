// What the Python tests call, see the top of each file. Seven programs would read the same headers
// seven times: they are one, which does what the name says under which it is called.
#pragma once

#include <string>
#include <vector>

namespace octet::test {

using Words = std::vector<std::string>;  // of the command line, without the program's name

void print_schedule(const Words& words);
void record_latents(const Words& words);
void run_gemm(const Words& words);
void run_model(const Words& words);
void ship_plans(const Words& words);
void tokenize(const Words& words);
void write_sample(const Words& words);

}  // namespace octet::test
