// The list of the decoder's weights.
#include <string>

#include "models/flux2_vae/vae.h"

namespace octet::flux2_vae {
namespace {

void visit_norm(Norm& norm, const std::string& name, int64_t channels, nn::WeightVisitor& visit) {
  visit.vector(norm.weight, name + ".weight", channels);
  visit.vector(norm.bias, name + ".bias", channels);
}

void visit_resnet(Resnet& resnet, const std::string& name, int64_t in, int64_t out,
                  nn::WeightVisitor& visit) {
  visit_norm(resnet.norm1, name + ".norm1", in, visit);
  visit.conv(resnet.conv1, {name + ".conv1", out, in, 3});
  visit_norm(resnet.norm2, name + ".norm2", out, visit);
  visit.conv(resnet.conv2, {name + ".conv2", out, out, 3});
  resnet.has_shortcut = in != out;
  if (resnet.has_shortcut) visit.conv(resnet.shortcut, {name + ".conv_shortcut", out, in, 1});
}

void visit_attention(MidAttention& attention, const std::string& name, int64_t channels,
                     nn::WeightVisitor& visit) {
  visit_norm(attention.norm, name + ".group_norm", channels, visit);
  const auto linear = [&](nn::Linear& into, const char* part) {
    visit.linear(into, {.layer = "vae.attention",
                        .k = channels,
                        .bias = true,
                        .layouts = {{{name + part, channels}}}});
  };
  linear(attention.q, ".to_q");
  linear(attention.k, ".to_k");
  linear(attention.v, ".to_v");
  linear(attention.out, ".to_out.0");
}

}  // namespace

void visit_weights(VaeDecoder& vae, nn::WeightVisitor& visit) {
  const VaeConfig& config = vae.config;
  const int64_t latent = config.latent_channels, widest = config.channels.back();
  if (config.post_quant_conv) visit.conv(vae.post_quant, {"post_quant_conv", latent, latent, 1});
  visit.conv(vae.conv_in, {"decoder.conv_in", widest, latent, 3});
  visit_resnet(vae.mid1, "decoder.mid_block.resnets.0", widest, widest, visit);
  if (config.mid_attention) {
    visit_attention(vae.mid_attention, "decoder.mid_block.attentions.0", widest, visit);
  }
  visit_resnet(vae.mid2, "decoder.mid_block.resnets.1", widest, widest, visit);
  const size_t levels = config.channels.size();
  vae.up.resize(levels);
  int64_t channels = widest;
  for (size_t i = 0; i < levels; ++i) {
    UpBlock& block = vae.up[i];
    const std::string name = "decoder.up_blocks." + std::to_string(i);
    const int64_t out = config.channels[levels - 1 - i];
    block.resnets.resize(static_cast<size_t>(config.resnets));
    for (size_t j = 0; j < block.resnets.size(); ++j) {
      visit_resnet(block.resnets[j], name + ".resnets." + std::to_string(j), channels, out, visit);
      channels = out;
    }
    block.doubles = i + 1 < levels;
    if (block.doubles) visit.conv(block.upsample, {name + ".upsamplers.0.conv", out, out, 3});
  }
  visit_norm(vae.norm_out, "decoder.conv_norm_out", channels, visit);
  visit.conv(vae.conv_out, {"decoder.conv_out", 3, channels, 3});
}

}  // namespace octet::flux2_vae
