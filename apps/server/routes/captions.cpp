// POST /v1/captions/check: what is wrong with a caption, before anybody waits for its picture.
#include <utility>

#include "octet/caption.h"
#include "server/routes/context.h"
#include "server/routes/fields.h"

namespace octet::server {
namespace {

std::string text_of_caption(Fields& fields, size_t most) {
  const Json* const caption = fields.find("caption");
  if (caption == nullptr) refuse_field("caption", "the request has no `caption`");
  if (caption->is_string()) return *fields.text("caption", most);
  return to_line(*caption);
}

Json finding_json(const CaptionFinding& finding) {
  return {{"path", finding.path},
          {"rule", finding.rule.text()},
          {"severity", word_of(finding.severity)},
          {"fixable", finding.fixable}};
}

void check_caption_of(const Context& context, const CallPtr& call) {
  const Json body = call->body();
  Fields fields(body);
  const std::string text = text_of_caption(fields, context.service.options().limits.caption_bytes);
  fields.refuse_unknown();
  const CaptionReport report = check_caption(text);
  Json findings = Json::array();
  for (const CaptionFinding& each : report.findings) findings.push_back(finding_json(each));
  call->json(200,
             {{"valid", report.valid()},
              {"findings", std::move(findings)},
              {"canonical", report.canonical.empty() ? Json(nullptr) : Json(report.canonical)}});
}

}  // namespace

void add_caption_routes(Context& context) {
  context.router.add(
      {.method = "POST",
       .pattern = "/v1/captions/check",
       .answer = [&context](const CallPtr& call) { check_caption_of(context, call); }});
}

}  // namespace octet::server
