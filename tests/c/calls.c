// The calls of octet/octet.h that name a stream, memory and a plain weight each time, from plain C
// on devices whose memory is the host's: the bits of a packed weight, and wrong use as sentences.
#include <math.h>
#include <stdlib.h>

#include "check.h"

_Static_assert(sizeof(octet_call) == 64, "octet_call");
_Static_assert(sizeof(octet_plain_weight) == 88, "octet_plain_weight");

enum { M = 9, N = 24, K = 64, STRIDE = 80 };

static struct {
  float x[M * K], scales[M], weight_scales[N], bias[N], one_scale[1], same_scales[N];
  uint16_t bf16_bias[N];
  int8_t codes[M * K], weight[N * STRIDE], dense[N * K];
  float y[M * N], expected[M * N];
} data;

static uint32_t random_state = 7;
static int random_below(int end) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int)((random_state >> 8) % (uint32_t)end);
}

static void fill_data(void) {
  for (int i = 0; i < M * K; ++i) data.x[i] = (float)(random_below(2001) - 1000) * 0.01f;
  for (int i = 0; i < N * STRIDE; ++i) data.weight[i] = (int8_t)(random_below(256) - 128);
  for (int i = 0; i < N * K; ++i) data.dense[i] = data.weight[i / K * STRIDE + i % K];
  data.one_scale[0] = 0.03f;
  for (int i = 0; i < N; ++i) {
    data.weight_scales[i] = (float)(1 + random_below(100)) * 0.001f;
    data.same_scales[i] = data.one_scale[0];
    // Eight bits of a mantissa: bf16 holds them.
    data.bias[i] = (float)(random_below(201) - 100);
    uint32_t bits;
    memcpy(&bits, &data.bias[i], sizeof bits);
    data.bf16_bias[i] = (uint16_t)(bits >> 16);
  }
}

static octet_matrix matrix(void* data_at, octet_dtype dtype, int64_t rows, int64_t columns) {
  octet_matrix made = {data_at, rows, columns, 0, dtype, 0};
  return made;
}

static octet_plain_weight plain_weight(void) {
  octet_plain_weight weight = octet_plain_weight_init();
  weight.codes = data.weight;
  weight.n = N;
  weight.k = K;
  weight.row_stride = STRIDE;
  weight.scales = data.weight_scales;
  weight.scale_count = N;
  return weight;
}

static octet_weight* pack(octet_device* device, const float* scales, int bias, int gate_up) {
  octet_weight_rows rows = octet_weight_rows_init();
  rows.codes = data.dense;
  rows.scales = scales;
  rows.bias = bias ? data.bias : NULL;
  rows.gate_up = gate_up;
  rows.n = N;
  rows.k = K;
  octet_weight* packed = NULL;
  CHECK(octet_weight_create(device, &rows, &packed) == OCTET_OK);
  return packed;
}

// What a plain weight gives is what the packed one does, from floats and from codes.
static void check_equal(octet_device* device, const octet_plain_weight* plain,
                        const octet_weight* packed, int32_t fusion, int64_t columns) {
  const octet_matrix x = matrix(data.x, OCTET_F32, M, K),
                     codes = matrix(data.codes, OCTET_I8, M, K);
  const octet_matrix y = matrix(data.y, OCTET_F32, M, columns);
  const octet_matrix expected = matrix(data.expected, OCTET_F32, M, columns);
  const size_t bytes = (size_t)(M * columns) * sizeof(float);
  octet_call call = octet_call_init();
  CHECK(octet_linear(device, packed, &x, fusion, &expected) == OCTET_OK);
  CHECK(octet_call_linear(device, &call, plain, NULL, &x, &y) == OCTET_OK);
  CHECK(memcmp(data.y, data.expected, bytes) == 0);
  CHECK(call.kernel != NULL && call.kernel[0] != '\0');

  memset(data.y, 0, sizeof data.y);
  CHECK(octet_call_quantize_rows(device, &call, &x, NULL, 0, &codes, data.scales) == OCTET_OK);
  CHECK(octet_call_linear_int8(device, &call, plain, NULL, &codes, data.scales, &y) == OCTET_OK);
  CHECK(memcmp(data.y, data.expected, bytes) == 0);

  memset(data.y, 0, sizeof data.y);
  CHECK(octet_call_linear(device, &call, NULL, packed, &x, &y) == OCTET_OK);
  CHECK(memcmp(data.y, data.expected, bytes) == 0);

  // Stepwise, from floats and from codes: the same bits.
  call.stepwise = 1;
  CHECK(octet_call_linear(device, &call, plain, NULL, &x, &expected) == OCTET_OK);
  CHECK(octet_call_quantize_rows(device, &call, &x, NULL, 0, &codes, data.scales) == OCTET_OK);
  CHECK(octet_call_linear_int8(device, &call, plain, NULL, &codes, data.scales, &y) == OCTET_OK);
  CHECK(memcmp(data.y, data.expected, bytes) == 0);
  call.stepwise = 2;
  CHECK_FAILS(octet_call_linear(device, &call, plain, NULL, &x, &y), OCTET_INVALID_REQUEST,
              "stepwise", "2");
}

static void check_weights(octet_device* device) {
  octet_plain_weight plain = plain_weight();
  octet_weight* packed = pack(device, data.weight_scales, 0, 0);
  check_equal(device, &plain, packed, OCTET_FUSION_NONE, N);
  octet_weight_free(packed);

  packed = pack(device, data.same_scales, 1, 0);
  plain.scales = data.one_scale;
  plain.scale_count = 1;
  plain.bias = data.bf16_bias;
  plain.bias_dtype = OCTET_BF16;
  check_equal(device, &plain, packed, OCTET_FUSION_BIAS, N);
  plain.bias = data.bias;
  plain.bias_dtype = OCTET_F32;
  check_equal(device, &plain, packed, OCTET_FUSION_BIAS, N);
  octet_weight_free(packed);

  packed = pack(device, data.weight_scales, 0, 1);
  plain = plain_weight();
  plain.gate_up = 1;
  check_equal(device, &plain, packed, OCTET_FUSION_SWIGLU, N / 2);
  octet_weight_free(packed);
}

static void check_wrong_use(octet_device* device, octet_device* other) {
  const int32_t invalid = OCTET_INVALID_REQUEST;
  const octet_matrix x = matrix(data.x, OCTET_F32, M, K), y = matrix(data.y, OCTET_F32, M, N);
  octet_call call = octet_call_init();
  octet_plain_weight plain = plain_weight();
  octet_weight* packed = pack(device, data.weight_scales, 0, 0);
#define CHECK_LINEAR(field, words) \
  CHECK_FAILS(octet_call_linear(device, &call, &plain, NULL, &x, &y), invalid, field, words)

  CHECK_FAILS(octet_call_linear(NULL, &call, &plain, NULL, &x, &y), invalid, "device", "NULL");
  CHECK_FAILS(octet_call_linear(device, NULL, &plain, NULL, &x, &y), invalid, "call", "NULL");
  CHECK_FAILS(octet_call_linear(device, &call, NULL, NULL, &x, &y), invalid, "weight", "one of");
  CHECK_FAILS(octet_call_linear(device, &call, &plain, packed, &x, &y), invalid, "weight",
              "one of");
  CHECK_FAILS(octet_call_linear(other, &call, NULL, packed, &x, &y), invalid, "weight", "another");
  CHECK_FAILS(octet_call_linear(device, &call, &plain, NULL, NULL, &y), invalid, "x", "NULL");
  CHECK_FAILS(octet_call_quantize_rows(device, &call, &x, NULL, 3, &y, data.scales), invalid,
              "rotation_group", "256");
  call.struct_size = 3;
  CHECK_LINEAR("struct_size", "_init()");
  call = octet_call_init();
  call.memory_bytes = 256;  // hosts do not look at it
  CHECK(octet_call_linear(device, &call, &plain, NULL, &x, &y) == OCTET_OK);
  call.memory = (char*)data.y + 1;
  CHECK(octet_call_linear(device, &call, &plain, NULL, &x, &y) == OCTET_OK);
  call = octet_call_init();
  call.stream = &call;
  CHECK_LINEAR("stream", "expected NULL");
  call = octet_call_init();
  call.reserved = 1;
  CHECK_LINEAR("reserved", "1");
  call = octet_call_init();

  plain.scale_count = 2;
  CHECK_LINEAR("scale_count", "expected 1 or n=24");
  plain = plain_weight();
  plain.scales = NULL;
  CHECK_LINEAR("scales", "NULL");
  const float infinite[1] = {INFINITY};
  plain.scales = infinite;
  plain.scale_count = 1;
  CHECK_LINEAR("scales", "finite");
  plain = plain_weight();
  float broken[K] = {-INFINITY};
  plain.smooth = broken;
  CHECK_LINEAR("smooth", "finite");
  plain = plain_weight();
  plain.codes = NULL;
  CHECK_LINEAR("codes", "NULL");
  plain = plain_weight();
  plain.row_stride = K - 1;
  CHECK_LINEAR("row_stride", "fewer");
  plain = plain_weight();
  plain.n = -1;
  CHECK_LINEAR("weight", "-1");
  plain = plain_weight();
  plain.bias = data.bias;
  plain.bias_dtype = OCTET_I32;
  CHECK_LINEAR("bias", "I32");
  plain.bias_dtype = OCTET_F32;
  plain.gate_up = 1;
  CHECK_FAILS(octet_call_linear(device, &call, &plain, NULL, &x, &y), OCTET_ERROR, "", "no bias");
  plain = plain_weight();
  plain.k = K / 2;
  CHECK_LINEAR("x", "k=32");
  octet_weight_free(packed);
}

int main(void) {
  fill_data();
  octet_device *cpu = NULL, *ref = NULL;
  CHECK(octet_device_open("cpu", NULL, 2, OCTET_TUNE_OFF, &cpu) == OCTET_OK);
  CHECK(octet_device_open("ref", NULL, 0, OCTET_TUNE_OFF, &ref) == OCTET_OK);
  check_weights(cpu);
  check_weights(ref);
  check_wrong_use(cpu, ref);
  check_wrong_use(ref, cpu);
  CHECK(octet_linear_memory(M, K) >= M * K + M * sizeof(float));
  CHECK(octet_linear_memory(-1, K) == 0);
  octet_device_free(cpu);
  octet_device_free(ref);
  return failures != 0;
}
