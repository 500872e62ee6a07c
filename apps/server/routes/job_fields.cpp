#include "server/routes/job_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "octet/error.h"
#include "octet/picture_files.h"

namespace octet::server {
namespace {

constexpr double kMostGuidance = 1000, kMostStrength = 100;
constexpr int64_t kHighestQuality = 100;
constexpr size_t kLongestName = 256;  // of presets, LoRAs, and idempotency keys
constexpr size_t kLongestSize = 32;

// Two requests are the same if their bodies are (FNV-1a): the client is compared with itself alone.
std::string fingerprint_of(const http::Request& request) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const unsigned char each : text) hash = (hash ^ each) * 0x100000001b3;
  };
  add(request.path);
  add("\n");
  add(request.body);
  return fmt::format("{:016x}-{}", hash, request.body.size());
}

std::string caption_text(Fields& fields, const Json& value, const RequestLimits& limits) {
  if (value.is_string()) return *fields.text("json_prompt", limits.caption_bytes);
  if (value.is_object()) return to_line(value);
  refuse_field("json_prompt", "`json_prompt` is neither an object nor a text with JSON");
}

void read_size(Fields& fields, PictureRequest& picture) {
  const std::optional<std::string> text = fields.text("size", kLongestSize);
  if (!text || *text == "auto") return;
  const std::string sentence = fmt::format(
      "`size` is {}, expected auto or WIDTHxHEIGHT, such as 1024x1024", to_line(Json(*text)));
  // The side of a square alone, which the library takes, is no size elsewhere.
  if (text->find('x') == std::string::npos) refuse_field("size", sentence);
  try {
    picture.size = parse_size(*text);
  } catch (const InvalidRequest&) {
    refuse_field("size", sentence);
  }
}

void read_guidance(Fields& fields, const RequestLimits& limits, PictureRequest& picture) {
  const Json* const value = fields.find("guidance");
  if (value == nullptr) return;
  Json values = *value;
  if (!value->is_array()) values = Json::array({*value});
  const auto most = static_cast<size_t>(limits.steps);
  const std::string expected = fmt::format(
      "expected a number from 0 to {}, or a list with one for each step", kMostGuidance);
  if (values.empty() || values.size() > most) refuse_field("guidance", "`guidance`: " + expected);
  for (const Json& each : values) {
    const double number = each.is_number() ? each.get<double>() : -1;
    if (!(number >= 0 && number <= kMostGuidance)) {
      refuse_field("guidance", "`guidance`: " + expected);
    }
    picture.guidance.push_back(static_cast<float>(number));
  }
}

void read_loras(Fields& fields, const RequestLimits& limits, JobSpec& spec) {
  const Json* const list = fields.list("lora", static_cast<size_t>(limits.loras));
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string inside = fmt::format("lora[{}]", i);
    Fields lora((*list)[i], "`" + inside + "`", inside + ".");
    const std::optional<std::string> name = lora.text("name", kLongestName);
    const double strength = lora.number("strength", -kMostStrength, kMostStrength).value_or(1);
    lora.refuse_unknown();
    if (!name || name->empty()) {
      refuse_field(inside + ".name", fmt::format("`{}.name` is missing", inside));
    }
    spec.loras.push_back(fmt::format("{}:{}", *name, strength));
  }
}

void read_output(Fields& fields, JobSpec& spec) {
  if (const auto format = fields.word<PictureFormat>("output_format")) spec.format = *format;
  if (!can_encode(spec.format)) {
    refuse_field("output_format", fmt::format("`output_format` is {}, which this server was built "
                                              "without; png is always there",
                                              word_of(spec.format)));
  }
  // OpenAI's clients may say 0; the formats begin at 1.
  if (const auto quality = fields.integer("output_compression", 0, kHighestQuality)) {
    spec.quality = std::max(static_cast<int>(*quality), 1);
  }
}

}  // namespace

bool is_json_object(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  return Json::accept(text);
}

uint64_t random_seed() {
  std::random_device source;  // 32 bits: everybody's numbers hold them
  return source();
}

void read_caption_fields(Fields& fields, const RequestLimits& limits, bool recognize,
                         JobSpec& spec) {
  const std::optional<std::string> prompt = fields.text("prompt", limits.caption_bytes);
  const Json* const caption = fields.find("json_prompt");
  if (prompt && caption != nullptr) {
    refuse_field("json_prompt",
                 "the request has both `prompt` and `json_prompt`, expected one of them");
  }
  if (caption != nullptr) {
    spec.picture.caption = caption_text(fields, *caption, limits);
    if (spec.picture.caption.empty()) refuse_field("json_prompt", "`json_prompt` is empty");
    return;
  }
  if (!prompt || prompt->find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse_field("prompt", prompt ? "`prompt` is empty, expected a description of the picture"
                                  : "the request has neither `prompt` nor `json_prompt`, expected "
                                    "one of them");
  }
  (recognize && is_json_object(*prompt) ? spec.picture.caption : spec.prompt) = *prompt;
}

void read_picture_fields(Fields& fields, const RequestLimits& limits, JobSpec& spec) {
  PictureRequest& picture = spec.picture;
  picture.caption_name = "json_prompt";
  picture.negative = fields.text("negative_prompt", limits.caption_bytes).value_or("");
  read_size(fields, picture);
  picture.seed = fields.seed("seed").value_or(random_seed());
  picture.steps = static_cast<int>(fields.integer("steps", 1, limits.steps).value_or(0));
  picture.images = static_cast<int>(fields.integer("n", 1, limits.images).value_or(1));
  read_guidance(fields, limits, picture);
  picture.preset = fields.text("preset", kLongestName).value_or("");
  read_loras(fields, limits, spec);
  read_output(fields, spec);
  if (const auto priority = fields.word<Priority>("priority")) spec.priority = *priority;
}

JobSpec spec_of(const Call& call) {
  const http::Request& request = call.request();
  JobSpec spec;
  spec.key = call.key();
  spec.request_id = request.id;
  spec.fingerprint = fingerprint_of(request);
  const std::string* const key = request.header("idempotency-key");
  if (key == nullptr) return spec;
  if (key->empty() || key->size() > kLongestName) {
    refuse(400,
           fmt::format("the header `Idempotency-Key` has {} bytes, expected 1 to {}", key->size(),
                       kLongestName),
           "Idempotency-Key");
  }
  spec.idempotency_key = *key;
  return spec;
}

}  // namespace octet::server
