// Two captions by a model that is loaded once: picture MODEL CAPTION.json OUT.png [LORA]
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "octet/caption.h"
#include "octet/devices.h"
#include "octet/engine.h"
#include "octet/error.h"
#include "octet/model_options.h"
#include "octet/version.h"

namespace {

bool on_progress(const octet::RenderProgress& progress) {
  static const char* const stages[] = {"text", "load", "denoise", "decode"};
  std::cerr << stages[static_cast<int>(progress.stage)] << " " << progress.done << "/"
            << progress.total << "\n";
  return true;  // false ends the work
}

void render(octet::Engine& engine, const octet::PictureRequest& request, const std::string& path) {
  octet::RenderCallbacks callbacks;
  callbacks.progress = on_progress;
  callbacks.preview = [&](const octet::Preview& preview) {  // after each step
    octet::Picture rough;
    rough.width = preview.width;
    rough.height = preview.height;
    rough.rgb = preview.rgb;
    octet::write_picture(path + ".preview.png", rough);
  };
  callbacks.picture = [&](const octet::Picture& picture) { octet::write_picture(path, picture); };
  const octet::RenderReport report = engine.render(request, callbacks);
  std::cout << path << ": " << report.denoise_s << " s for " << report.steps << " steps, "
            << report.linears.int8 << " linears in INT8\n";
}

void render_all(const std::string& model, const octet::PictureRequest& first,
                const std::string& out, const char* lora) {
  octet::ModelOptions options;
  options.model = model;
  octet::Engine engine(options, on_progress);
  std::cout << octet::plan_text(engine.info());

  // Another thread ends the call that is under way after ten minutes.
  std::mutex mutex;
  std::condition_variable_any wake;
  const std::jthread timer([&](const std::stop_token& done) {
    std::unique_lock lock(mutex);
    const auto ended = [&] { return done.stop_requested(); };
    if (!wake.wait_for(lock, done, std::chrono::minutes(10), ended)) engine.cancel();
  });

  render(engine, first, out);

  octet::PictureRequest second = first;
  second.caption = octet::wrap_plain_text("A calm sea at dusk.");
  second.size = {512, 256};
  render(engine, second, out + ".sea.png");

  if (lora != nullptr) {
    engine.set_loras({octet::parse_lora(lora)});  // "style.safetensors:0.8"
    render(engine, first, out + ".lora.png");
    engine.set_loras({});  // and the model is as it was
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: picture MODEL CAPTION.json OUT.png [LORA]\n";
    return 2;
  }
  try {
    std::cout << "Octet " << octet::version() << " on\n";
    for (const octet::DeviceInfo& device : octet::list_devices()) {
      if (device.unavailable.empty()) std::cout << "  " << device.description << "\n";
    }

    const octet::CaptionReport caption = octet::check_caption(octet::read_caption(argv[2]));
    for (const octet::CaptionFinding& finding : caption.findings) {
      std::cerr << finding.path << ": " << finding.rule << "\n";
    }
    if (!caption.valid()) return 1;

    octet::PictureRequest request;
    request.caption = caption.canonical;
    request.size = {512, 512};
    request.preset = "turbo";
    request.seed = 7;
    render_all(argv[1], request, argv[3], argc == 5 ? argv[4] : nullptr);
  } catch (const octet::Cancelled&) {
    std::cerr << "picture: stopped\n";
    return 1;
  } catch (const octet::Error& error) {
    std::cerr << "picture: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
