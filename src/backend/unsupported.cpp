// Until every backend has these.
#include "backend/backend.h"
#include "base/error.h"

namespace octet {
void Backend::do_norm(const ConstTensorView&, const RowNorm&, const TensorView&) {
  fail("{}: has no do_norm", name());
}
void Backend::do_norm_quantize(const ConstTensorView&, const RowNorm&, const ActivationTransform&,
                               const QTensor&) {
  fail("{}: has no do_norm_quantize", name());
}
void Backend::do_rotate_heads(const TensorView&, const HeadRotation&) {
  fail("{}: has no do_rotate_heads", name());
}
void Backend::do_attention(const AttentionArgs&) { fail("{}: has no do_attention", name()); }
void Backend::do_swiglu(const ConstTensorView&, const ConstTensorView&, const TensorView&) {
  fail("{}: has no do_swiglu", name());
}
void Backend::do_activate(const ConstTensorView&, Activation, const TensorView&) {
  fail("{}: has no do_activate", name());
}
void Backend::do_add(const TensorView&, const ConstTensorView&) {
  fail("{}: has no do_add", name());
}
void Backend::do_add_gated(const TensorView&, const ConstTensorView&, const RowNorm&,
                           const ConstTensorView&) {
  fail("{}: has no do_add_gated", name());
}
void Backend::do_embed(const ConstTensorView&, std::span<const int32_t>, const TensorView&) {
  fail("{}: has no do_embed", name());
}
void Backend::do_sinusoids(std::span<const float>, const ConstTensorView&, const TensorView&) {
  fail("{}: has no do_sinusoids", name());
}
void Backend::do_group_norm(const ConstTensorView&, const GroupNorm&, const TensorView&) {
  fail("{}: has no do_group_norm", name());
}
void Backend::do_conv2d(const ConvArgs&) { fail("{}: has no do_conv2d", name()); }
void Backend::do_upsample(const ConstTensorView&, int64_t, int64_t, const TensorView&) {
  fail("{}: has no do_upsample", name());
}
}  // namespace octet
