#include "engine/text_encoding.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/stopwatch.h"

namespace octet::engine {
namespace {

// A budget counts here as well: the job that runs is not to exceed it for the sake of the next.
bool has_room(Session& session, const PromptCache::Tokens& tokens) {
  const double free = free_for_work(session.backend(), session.options().model.max_memory);
  return free > static_cast<double>(session.work_bytes().of_text(std::ssize(tokens)));
}

}  // namespace

PromptCache::Text encode_text(Session& session, nn::Context& ctx, const PromptCache::Tokens& tokens,
                              const OnRenderProgress& progress) {
  session.load(session.text(), progress);
  const Stopwatch watch;
  const models::TextEncoder& encoder = *session.model().text_encoder;
  const int64_t layers = encoder.unit_count() - 1;
  const auto tell = [&](int64_t done) {
    session.tell(progress, {.stage = Stage::text, .done = done, .total = layers});
  };
  tell(0);
  auto text = std::make_shared<EncodedText>();
  ctx.profile->enter_network(encoder.name());
  text->features = encoder.encode(ctx, tokens, tell);
  ctx.profile->enter_network("");
  text->record.linears = ctx.profile->take_linears();
  session.text().end_use();
  ctx.profile->collect();
  text->record.kernels = ctx.profile->kernels();
  session.kept().times.text_s_per_token =
      watch.microseconds() * 1e-6 / static_cast<double>(tokens.size());
  if (!session.options().once) session.kept().prompts.add(tokens, text);
  return text;
}

void encode_ahead(Session& session, const Job& job) try {
  job.check_is_for(session.facts());
  const PartStore& encoder = session.text();
  if (session.options().once || !encoder.stays() || !encoder.is_loaded()) {
    return;
  }
  nn::Profile profile(session.backend());
  nn::Context ctx = session.context();
  ctx.profile = &profile;
  for (const PromptCache::Tokens* tokens : {&job.tokens, &job.negative_tokens}) {
    if (tokens->empty() || session.kept().prompts.find(*tokens) != nullptr) continue;
    if (!has_room(session, *tokens)) return;
    profile.clear();
    encode_text(session, ctx, *tokens, {});
  }
} catch (const Cancelled&) {
  throw;
} catch (const std::exception& error) {
  log::debug("a text is not encoded ahead of its picture: {}", error.what());
}

}  // namespace octet::engine
