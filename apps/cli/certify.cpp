// octet certify

#include <fmt/format.h>

#include <memory>
#include <string>

#include "commands.h"
#include "octet/error.h"
#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"
#include "picture_flags.h"
#include "rendering.h"

namespace octet::cli {
namespace {

struct CertifyArguments {
  PictureArguments picture;
  std::string reference, page = "certificate.html";
  std::optional<double> min_psnr, min_snr;
  bool stamp = false;
};

void certify_model(const CommonFlags& flags, const CertifyArguments& arguments) {
  const GenerateRequest shared = request_from(arguments.picture, flags);
  Captions captions;
  if (are_given(arguments.picture.captions)) captions = read_captions(arguments.picture.captions);
  say_warnings(flags, captions);
  CertifyRequest request{.model = shared.model,
                         .reference = arguments.reference,
                         .picture = shared.picture,
                         .captions = texts_of(captions),
                         .min_psnr_db = arguments.min_psnr.value_or(kMinPsnrDb),
                         .min_snr_db = arguments.min_snr.value_or(kMinSnrDb)};
  std::vector<std::string> inputs = inputs_of(arguments.picture, shared);
  inputs.push_back(arguments.reference);
  check_outputs(flags, {arguments.page}, inputs);
  if (arguments.stamp) check_takes_stamp(request);
  if (request.captions.empty()) request.captions = default_captions(request.model.model);
  const Certificate certificate = [&] {
    RenderingProgress progress(flags);
    CompareCallbacks callbacks;
    callbacks.progress = [&](ComparedSide side, size_t caption, const RenderProgress& step) {
      progress.begin(fmt::format(
          "{}: {}/{} {}: ", side == ComparedSide::a ? "reference" : "checkpoint", caption + 1,
          request.captions.size(), printable(request.captions[caption].name)));
      return progress(step);
    };
    return certify(request, callbacks);
  }();
  write_text_file(arguments.page, certificate_page(certificate));
  show(flags, to_text(certificate, detail_of(flags)) + printable(arguments.page) + "\n",
       certificate.json + "\n");
  if (arguments.stamp) stamp_checkpoint(certificate);  // last: what was found is not lost with it
  if (!certificate.passed) {
    throw Error(fmt::format("{}: differs from its reference: {}", request.model.model,
                            certificate.reasons.front()));
  }
}

}  // namespace

void add_certify(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(
      program, flags, "certify", "Test how faithfully a checkpoint runs, and write a certificate");
  const auto arguments = std::make_shared<CertifyArguments>();
  ModelOptions& model = arguments->picture.request.model;
  arguments->picture.request.picture.images = 2;
  add_value(command, "CHECKPOINT", "MODEL", model.model, "A model, as for --model of generate")
      ->required();
  add_value(command, "--reference", "MODEL", arguments->reference,
            "A model to compare it with; its linears run in floating point (default: the "
            "checkpoint itself)");
  add_picture_flags(command, arguments->picture);
  add_choice(command, "--linears", model.linears, "The checkpoint's large linears");
  add_choice(command, "--dtype", model.activations, "Activations");
  add_require_int8(command, model.require_int8);
  add_value(command, "-o,--out", "FILE", arguments->page, "The certificate as an HTML page")
      ->capture_default_str()
      ->check(no_empty_path("a file"));
  add_number(
      command, "--min-psnr", arguments->min_psnr, 0, 1000,
      fmt::format("Lowest acceptable mean PSNR of the pictures, in dB (default: {})", kMinPsnrDb));
  add_number(
      command, "--min-snr", arguments->min_snr, -1000, 1000,
      fmt::format("Lowest acceptable mean SNR of the first step's velocity, in dB (default: {})",
                  kMinSnrDb));
  command.add_flag("--stamp", arguments->stamp,
                   "Write the certificate's digest, date, verdict and main figures into the "
                   "metadata of the networks' safetensors files");
  set_group(command, kModelOptions, {"--reference"});
  set_group(command, kPictureOptions, {"--out"});
  set_examples(command, {"octet certify ideogram-4-int8 --base ideogram-ai/ideogram-4-fp8",
                         "octet certify ideogram-4-int8 --reference ideogram-ai/ideogram-4-fp8 "
                         "--caption captions/ --stamp"});
  command.callback([&flags, arguments] { certify_model(flags, *arguments); });
}

}  // namespace octet::cli
