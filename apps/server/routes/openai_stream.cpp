// `"stream": true`: previews while a picture comes to be, then the picture, as the events that
// OpenAI's clients know.
#include <map>
#include <utility>

#include "server/routes/base64.h"
#include "server/routes/job_json.h"
#include "server/routes/openai.h"
#include "server/routes/sse.h"

namespace octet::server {
namespace {

// One stream, from its first event to its last. Its functions are called one at a time.
class ImageStream {
 public:
  ImageStream(std::shared_ptr<http::Stream> stream, const ImageRequest& request,
              std::shared_ptr<Job> job)
      : stream_(std::move(stream)),
        quality_(request.quality),
        token_side_(request.token_side),
        partial_images_(request.partial_images),
        job_(std::move(job)) {}

  void take(const JobEvent& event) {
    switch (event.kind) {
      case JobEvent::Kind::preview: return take_preview(event.preview);
      case JobEvent::Kind::picture: return take_picture(event.picture);
      case JobEvent::Kind::ended: return take_end();
      default: return;
    }
  }

 private:
  Json event_json(const char* type, const std::string& bytes, PictureFormat format) const {
    return {{"type", type},
            {"b64_json", to_base64(bytes)},
            {"created_at", static_cast<int64_t>(now_s())},
            {"size", size_text(job_->spec().size)},
            {"quality", quality_},
            {"background", "opaque"},
            {"output_format", word_of(format)}};
  }

  void write(const char* type, const Json& json) { stream_->write(sse_event(type, to_line(json))); }

  // The last step's is nearly the picture, which follows at once.
  void take_preview(const FinishedPreview& preview) {
    int& sent = sent_[preview.image];
    if (preview.step == preview.steps || sent >= partial_images_ || is_slow(*stream_)) return;
    constexpr const char* kType = "image_generation.partial_image";
    Json json = event_json(kType, *preview.png, PictureFormat::png);
    json["partial_image_index"] = sent++;
    json["image_index"] = preview.image;
    write(kType, json);
  }

  void take_end() {
    const JobView view = job_->view();
    if (view.state != JobState::completed) {
      write("error", {{"error", error_json(failure_of(view))}});
    }
    stream_->end();
  }

  void take_picture(const FinishedPicture& picture) {
    constexpr const char* kType = "image_generation.completed";
    Json json = event_json(kType, *picture.file, picture.format);
    json["usage"] = usage_json(job_->spec(), 1, token_side_);
    json["image_index"] = picture.index;
    json["seed"] = picture.seed;
    json["octet"] = {{"job", job_->id()}, {"warnings", job_->spec().warnings}};
    write(kType, json);
  }

  const std::shared_ptr<http::Stream> stream_;
  const std::string quality_;
  const int token_side_;
  const int partial_images_;
  const std::shared_ptr<Job> job_;
  std::map<int, int> sent_;  // previews of each picture
};

}  // namespace

void stream_images(Context& context, const CallPtr& call, const ImageRequest& request,
                   const std::shared_ptr<Job>& job) {
  const auto follower = context.followers.follow(job, 0);
  http::Headers headers;
  if (!request.ignored.empty()) {
    headers.emplace_back("X-Octet-Ignored", ignored_header(request.ignored));
  }
  const std::shared_ptr<http::Stream> stream = call->event_stream(std::move(headers));
  cancel_with_client(context, call, follower);
  context.keep_alive.add(stream);
  const auto images = std::make_shared<ImageStream>(stream, request, job);
  follower->start([images](const JobEvent& event) { images->take(event); });
}

}  // namespace octet::server
