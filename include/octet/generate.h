// Makes pictures from one caption with an engine that is loaded, used once and released.
//
//   octet::GenerateRequest request;
//   request.model.model = "ideogram-4";
//   request.picture.caption = octet::read_caption("poster.json");
//   octet::generate(request, {.picture = [](const octet::Picture& picture) {
//     octet::write_picture("poster.png", picture);
//   }});
#pragma once

#include "octet/engine.h"

namespace octet {

struct GenerateRequest {
  ModelOptions model = {};
  PictureRequest picture = {};
};

// Parts without a rule in `model.keep` are released after use, so that only the networks are in
// memory together. Throws Error with one sentence for a bad request, model or caption, if possible
// before anything is loaded.
OCTET_API RenderReport generate(const GenerateRequest& request, const RenderCallbacks& callbacks);

}  // namespace octet
