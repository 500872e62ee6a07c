#include "formats/boundary.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/never_destroyed.h"
#include "base/out_of_memory.h"
#include "formats/json_value.h"
#include "formats/text.h"
#include "octet/error.h"

namespace octet {
namespace {

// A copy takes no memory.
const OutOfMemory& out_of_memory() {
  static const auto& made =
      never_destroyed<OutOfMemory>("out of memory; close programs or use a smaller problem");
  return made;
}

// While there is memory. Other libraries' code may run before this, and use the library.
[[gnu::constructor]] void make_early() { out_of_memory(); }

// Where the system itself says so.
[[noreturn]] void throw_by_code(const std::error_code& code, const std::string& sentence) {
  if (code == std::errc::not_enough_memory) throw OutOfMemory(sentence);
  throw Error(sentence);
}

[[noreturn]] void rethrow_with_memory() {
  const auto unexpected = [](const char* what) {
    return Error(fmt::format("unexpected failure: {}",
                             one_line(what != nullptr ? what : "an exception that says nothing")));
  };
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw out_of_memory();
  } catch (const std::length_error&) {  // of a container that would pass all memory
    throw out_of_memory();
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().empty() ? "a path" : error.path1().string();
    throw_by_code(error.code(), fmt::format("{}: {}", one_line(path), error.code().message()));
  } catch (const std::system_error& error) {
    throw_by_code(error.code(), fmt::format("the system refused: {}", one_line(error.what())));
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("JSON that is not as expected: {}", one_line(error.what())));
  } catch (const std::exception& error) {
    throw unexpected(error.what());
  } catch (...) {
    throw unexpected("an exception of another kind");
  }
}

}  // namespace

void rethrow_as_error() {
  try {
    rethrow_with_memory();
  } catch (const std::bad_alloc&) {  // for the sentence
    throw out_of_memory();
  }
}

}  // namespace octet
