// Makes pictures from one caption: an engine that is loaded, used once and released.
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
  ModelOptions model;
  PictureRequest picture;
};

// Parts that no rule of `model.keep` names are released after their use, so that they never meet in
// memory but for the networks. Throws Error with one sentence for a bad request, model or caption;
// before anything is loaded where that can be known.
OCTET_API RenderReport generate(const GenerateRequest& request, const RenderCallbacks& callbacks);

}  // namespace octet
