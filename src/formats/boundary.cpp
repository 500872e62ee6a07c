#include "formats/boundary.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/out_of_memory.h"
#include "formats/text.h"
#include "octet/error.h"

namespace octet {

void rethrow_as_error() {
  const auto unexpected = [](const char* what) {
    return Error(fmt::format("unexpected failure: {}", one_line(what)));
  };
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("out of memory; close programs or use a smaller problem");
  } catch (const std::length_error&) {  // of a container that would pass all memory
    throw OutOfMemory("out of memory; close programs or use a smaller problem");
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().empty() ? "a path" : error.path1().string();
    throw Error(fmt::format("{}: {}", one_line(path), error.code().message()));
  } catch (const std::system_error& error) {
    throw Error(fmt::format("the system refused: {}", one_line(error.what())));
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("JSON that is not as expected: {}", one_line(error.what())));
  } catch (const std::exception& error) {
    throw unexpected(error.what());
  } catch (...) {
    throw unexpected("an exception of another kind");
  }
}

}  // namespace octet
