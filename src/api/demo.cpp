#include "octet/demo.h"

#include "api/boundary.h"
#include "base/env.h"
#include "base/error.h"
#include "demo/demo_model.h"

namespace octet {
namespace {

constexpr const char* kCaption =
    R"({"high_level_description":"Soft coloured shapes drift over one another.",)"
    R"("style_description":{"aesthetics":"calm, abstract","lighting":"even, without a source",)"
    R"("medium":"painting","art_style":"flat shapes with soft edges"},)"
    R"("compositional_deconstruction":{"background":"A wide, quiet gradient.","elements":[]}})";

}  // namespace

GenerateRequest demo_request() try {
  const auto cache = env::cache_dir();
  check(cache.has_value(),
        "demo: there is no folder for its model; set OCTET_CACHE_DIR or HOME to one");
  GenerateRequest request;
  request.model.model = (*cache / "demo-model").string();
  demo::write_demo_model(request.model.model);
  request.picture.caption = kCaption;
  request.picture.size = {512, 512};
  request.picture.preset = "turbo";
  request.picture.seed = 7;
  return request;
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
