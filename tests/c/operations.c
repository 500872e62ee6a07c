// The operations of octet/octet.h from plain C, on devices whose memory is the host's: bits as the
// numeric contract has them, and wrong use as sentences.
#include <math.h>
#include <stdlib.h>

#include "check.h"

// A struct of another size is another interface.
_Static_assert(sizeof(octet_pair) == 16, "octet_pair");
_Static_assert(sizeof(octet_lora) == 32, "octet_lora");
_Static_assert(sizeof(octet_keep) == 16, "octet_keep");
_Static_assert(sizeof(octet_matrix) == 40, "octet_matrix");
_Static_assert(sizeof(octet_options) == 152, "octet_options");
_Static_assert(sizeof(octet_request) == 144, "octet_request");
_Static_assert(sizeof(octet_callbacks) == 56, "octet_callbacks");
_Static_assert(sizeof(octet_progress) == 56, "octet_progress");
_Static_assert(sizeof(octet_preview) == 40, "octet_preview");
_Static_assert(sizeof(octet_picture) == 56, "octet_picture");
_Static_assert(sizeof(octet_report) == 96, "octet_report");
_Static_assert(sizeof(octet_info) == 56, "octet_info");
_Static_assert(sizeof(octet_weight_rows) == 72, "octet_weight_rows");
_Static_assert(sizeof(octet_job_info) == 40, "octet_job_info");
_Static_assert(sizeof(octet_estimate) == 32, "octet_estimate");
_Static_assert(sizeof(octet_state) == 88, "octet_state");
_Static_assert(sizeof(octet_preset) == 32, "octet_preset");
_Static_assert(sizeof(octet_finding) == 32, "octet_finding");
_Static_assert(sizeof(octet_bytes) == 16, "octet_bytes");
_Static_assert(sizeof(octet_device_info) == 40, "octet_device_info");

enum { M = 13, N = 22, K = 64, STRIDE = 70 };

static uint32_t random_state = 1;
static int random_below(int end) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int)((random_state >> 8) % (uint32_t)end);
}

static struct {
  float x[M * STRIDE];  // rows are apart
  int8_t codes[M * K];
  float scales[M];
  int8_t weight[N * K];
  float weight_scales[N], bias[N], smooth[K];
  float y[M * N], expected[M * N];
  int32_t sums[M * N];
} data;

static void fill_data(void) {
  for (int i = 0; i < M * STRIDE; ++i) data.x[i] = (float)(random_below(2001) - 1000) * 0.01f;
  for (int i = 0; i < N * K; ++i) data.weight[i] = (int8_t)(random_below(256) - 128);
  for (int i = 0; i < N; ++i) {
    data.weight_scales[i] = (float)(1 + random_below(100)) * 0.001f;
    data.bias[i] = (float)(random_below(201) - 100) * 0.1f;
  }
  for (int i = 0; i < K; ++i) data.smooth[i] = (float)(1 + random_below(30)) * 0.1f;
}

static octet_matrix matrix(void* data_at, octet_dtype dtype, int64_t rows, int64_t columns) {
  octet_matrix made = {data_at, rows, columns, 0, dtype, 0};
  return made;
}

static octet_matrix rows_of_x(void) {
  octet_matrix x = matrix(data.x, OCTET_F32, M, K);
  x.row_stride = STRIDE;
  return x;
}

static octet_weight_rows rows_of_weight(void) {
  octet_weight_rows rows = octet_weight_rows_init();
  rows.codes = data.weight;
  rows.scales = data.weight_scales;
  rows.n = N;
  rows.k = K;
  return rows;
}

static int64_t sum_of(int row, int column) {
  int64_t sum = 0;
  for (int k = 0; k < K; ++k) sum += data.codes[row * K + k] * data.weight[column * K + k];
  return sum;
}

static void check_quantized(octet_device* device, const float* smooth) {
  const octet_matrix x = rows_of_x(), codes = matrix(data.codes, OCTET_I8, M, K);
  CHECK(octet_quantize_rows(device, &x, smooth, 0, &codes, data.scales) == OCTET_OK);
  for (int i = 0; i < M; ++i) {
    float row[K], amax = 0;
    for (int k = 0; k < K; ++k) {
      row[k] = data.x[i * STRIDE + k] * (smooth != NULL ? smooth[k] : 1.0f);
      amax = fmaxf(amax, fabsf(row[k]));
    }
    CHECK(data.scales[i] == amax / 127.0f);
    for (int k = 0; k < K; ++k) {
      CHECK(data.codes[i * K + k] == (int8_t)rintf(row[k] * (127.0f / amax)));
    }
  }
}

static void check_linears(octet_device* device) {
  const octet_matrix x = rows_of_x(), codes = matrix(data.codes, OCTET_I8, M, K);
  const octet_matrix y = matrix(data.y, OCTET_F32, M, N);
  const octet_matrix sums = matrix(data.sums, OCTET_I32, M, N);
  octet_weight_rows rows = rows_of_weight();
  rows.bias = data.bias;
  rows.on_host = 1;
  octet_weight* weight = NULL;
  CHECK(octet_weight_create(device, &rows, &weight) == OCTET_OK);

  check_quantized(device, NULL);
  CHECK(octet_linear_int8(device, weight, &codes, data.scales, OCTET_FUSION_NONE, &sums) ==
        OCTET_OK);
  CHECK(octet_linear_int8(device, weight, &codes, data.scales, OCTET_FUSION_BIAS, &y) == OCTET_OK);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const int64_t sum = sum_of(i, j);
      CHECK(data.sums[i * N + j] == sum);
      const float scaled = ((float)sum * data.scales[i]) * data.weight_scales[j];
      data.expected[i * N + j] = scaled + data.bias[j];
      CHECK(data.y[i * N + j] == data.expected[i * N + j]);
    }
  }
  char kernel[100];
  CHECK(octet_last_kernel(device, kernel, sizeof kernel) > 0 && kernel[0] != '\0');

  memset(data.y, 0, sizeof data.y);
  CHECK(octet_linear(device, weight, &x, OCTET_FUSION_BIAS, &y) == OCTET_OK);
  CHECK(memcmp(data.y, data.expected, sizeof data.y) == 0);
  octet_weight_free(weight);
}

// The weight remembers what its activations need, and gate and up rows end in one column.
static void check_transforms(octet_device* device) {
  octet_weight_rows rows = rows_of_weight();
  rows.smooth = data.smooth;
  rows.gate_up = 1;
  octet_weight* weight = NULL;
  CHECK(octet_weight_create(device, &rows, &weight) == OCTET_OK);
  check_quantized(device, data.smooth);
  const octet_matrix x = rows_of_x(), codes = matrix(data.codes, OCTET_I8, M, K);
  const octet_matrix y = matrix(data.y, OCTET_F32, M, N / 2);
  const octet_matrix again = matrix(data.expected, OCTET_F32, M, N / 2);
  const int32_t swiglu = OCTET_FUSION_SWIGLU;
  CHECK(octet_linear_int8(device, weight, &codes, data.scales, swiglu, &again) == OCTET_OK);
  CHECK(octet_linear(device, weight, &x, swiglu, &y) == OCTET_OK);
  CHECK(memcmp(data.y, data.expected, M * N / 2 * sizeof(float)) == 0);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N / 2; ++j) {
      const float scale = data.scales[i];
      const float gate = (float)sum_of(i, j) * scale * data.weight_scales[j];
      const float up = (float)sum_of(i, N / 2 + j) * scale * data.weight_scales[N / 2 + j];
      const float expected = gate / (1 + expf(-gate)) * up;
      CHECK(fabsf(data.y[i * N / 2 + j] - expected) <= 1e-5f * fabsf(expected) + 1e-30f);
    }
  }
  octet_weight_free(weight);

  const octet_matrix values = matrix(data.codes, OCTET_I8, M, K);
  CHECK(octet_quantize_rows(device, &x, NULL, 16, &values, data.scales) == OCTET_OK);
}

static void check_wrong_use(octet_device* device, octet_device* other) {
  const int32_t invalid = OCTET_INVALID_REQUEST;
  octet_device* opened = device;
  CHECK_FAILS(octet_device_open("tpu", NULL, 0, 0, &opened), invalid, "device", "tpu");
  CHECK(opened == NULL);
  CHECK_FAILS(octet_device_open(NULL, NULL, 0, 0, &opened), invalid, "name", "NULL");
  CHECK_FAILS(octet_device_open("cpu", NULL, 0, 0, NULL), invalid, "device", "NULL");
  CHECK_FAILS(octet_device_open("cpu", &opened, 0, 0, &opened), invalid, "stream", "NULL");
  CHECK(opened == NULL);
  CHECK_FAILS(octet_device_open("cpu", NULL, -1, 0, &opened), invalid, "threads", "-1");
  CHECK_FAILS(octet_device_open("cpu", NULL, 0, 3, &opened), invalid, "tuning", "3");
  CHECK_FAILS(octet_device_synchronize(NULL), invalid, "device", "NULL");

  const octet_matrix codes = matrix(data.codes, OCTET_I8, M, K);
  octet_matrix x = rows_of_x();
  float* scales = data.scales;
  CHECK_FAILS(octet_quantize_rows(NULL, &x, NULL, 0, &codes, scales), invalid, "device", "NULL");
  CHECK_FAILS(octet_quantize_rows(device, NULL, NULL, 0, &codes, scales), invalid, "x", "NULL");
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, NULL), invalid, "scales", "NULL");
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &x, scales), OCTET_ERROR, "", "expected I8");
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 7, &codes, scales), invalid, "rotation_group",
              "expected 0, 4, 16");
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 256, &codes, scales), invalid, "rotation_group",
              "64 columns");
  CHECK_FAILS(octet_quantize_rows(device, &x, data.smooth, 16, &codes, scales), invalid,
              "rotation_group", "expected one of them");
  x.dtype = 99;
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, scales), invalid, "x", "99");
  x = rows_of_x();
  x.rows = -1;
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, scales), invalid, "x", "-1");
  x = rows_of_x();
  x.rows = x.row_stride = INT64_MAX;
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, scales), invalid, "x", "rows");
  x = rows_of_x();
  x.row_stride = K - 1;
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, scales), invalid, "x", "row_stride");
  x = rows_of_x();
  x.reserved = 1;
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, scales), invalid, "reserved", "1");
  x = rows_of_x();
  x.data = NULL;
  CHECK_FAILS(octet_quantize_rows(device, &x, NULL, 0, &codes, scales), invalid, "x", "NULL");

  octet_weight* weight = NULL;
  octet_weight_rows rows = rows_of_weight();
  CHECK_FAILS(octet_weight_create(device, &rows, NULL), invalid, "weight", "NULL");
  CHECK_FAILS(octet_weight_create(device, NULL, &weight), invalid, "rows", "NULL");
  rows.struct_size = 8;
  CHECK_FAILS(octet_weight_create(device, &rows, &weight), invalid, "struct_size", "_init()");
  rows.struct_size = sizeof rows + 8;
  CHECK_FAILS(octet_weight_create(device, &rows, &weight), invalid, "struct_size", "newer");
  rows = rows_of_weight();
  rows.scales = NULL;
  CHECK_FAILS(octet_weight_create(device, &rows, &weight), invalid, "scales", "NULL");
  rows = rows_of_weight();
  float broken[K] = {1, NAN};
  rows.smooth = broken;
  CHECK_FAILS(octet_weight_create(device, &rows, &weight), invalid, "smooth", "nan as number 1");
  rows = rows_of_weight();
  rows.rotation_group = -4;
  CHECK_FAILS(octet_weight_create(device, &rows, &weight), invalid, "rotation_group", "-4");
  rows = rows_of_weight();
  rows.k = 1 << 20;
  rows.n = 0;
  CHECK_FAILS(octet_weight_create(device, &rows, &weight), OCTET_ERROR, "", "overflow");
  CHECK(weight == NULL);

  rows = rows_of_weight();
  CHECK(octet_weight_create(device, &rows, &weight) == OCTET_OK);
  octet_matrix y = matrix(data.y, OCTET_F32, M, N);
  x = rows_of_x();
  CHECK_FAILS(octet_linear(device, NULL, &x, 0, &y), invalid, "weight", "NULL");
  CHECK_FAILS(octet_linear(other, weight, &x, 0, &y), invalid, "weight", "another device");
  CHECK_FAILS(octet_linear(device, weight, &x, 9, &y), invalid, "fusion", "9");
  CHECK_FAILS(octet_linear(device, weight, &x, OCTET_FUSION_BIAS, &y), OCTET_ERROR, "", "bias");
  CHECK_FAILS(octet_linear(device, weight, &x, OCTET_FUSION_SWIGLU, &y), OCTET_ERROR, "", "swiglu");
  CHECK_FAILS(octet_linear(device, weight, &x, 0, NULL), invalid, "y", "NULL");
  CHECK_FAILS(octet_linear_int8(device, weight, &x, scales, 0, &y), OCTET_ERROR, "", "expected I8");
  x.columns = K / 2;
  CHECK_FAILS(octet_linear(device, weight, &x, 0, &y), invalid, "x", "k=64");
  x = rows_of_x();
  x.rows = 1 << 20;  // which are not there, and not read
  CHECK_FAILS(octet_linear(device, weight, &x, 0, &y), invalid, "y", "rows");
  y.columns = N - 1;
  CHECK_FAILS(octet_linear_int8(device, weight, &codes, scales, 0, &y), OCTET_ERROR, "",
              "[13, 22]");
  octet_weight_free(weight);

  char text[8] = "before";
  CHECK(octet_device_describe(NULL, text, sizeof text) == 0 && text[0] == '\0');
  CHECK(strcmp(octet_last_error_field(), "device") == 0);
  CHECK(octet_device_describe(device, NULL, 5) == 0);
  CHECK(strcmp(octet_last_error_field(), "text") == 0);
  CHECK(octet_device_synchronize(device) == OCTET_OK && octet_last_error()[0] == '\0');
}

static void check_text(octet_device* device) {
  const size_t length = octet_device_describe(device, NULL, 0);
  CHECK(length > 3);
  char* text = malloc(length + 1);
  if (text == NULL) abort();
  CHECK(octet_device_describe(device, text, length + 1) == length && strlen(text) == length);
  char start[4] = "???";
  CHECK(octet_device_describe(device, start, sizeof start) == length);
  CHECK(strlen(start) == 3 && memcmp(start, text, 3) == 0);
  free(text);
}

int main(void) {
  CHECK(octet_abi_version() == OCTET_ABI_VERSION);
  CHECK(octet_version()[0] != '\0' && octet_commit()[0] != '\0');
  CHECK(octet_last_error()[0] == '\0');
  octet_device_free(NULL);
  octet_weight_free(NULL);

  fill_data();
  octet_device *cpu = NULL, *ref = NULL;
  CHECK(octet_device_open("cpu", NULL, 2, OCTET_TUNE_OFF, &cpu) == OCTET_OK);
  CHECK(octet_device_open("ref", NULL, 0, OCTET_TUNE_MISSING, &ref) == OCTET_OK);
  octet_device* const devices[] = {cpu, ref};
  for (int i = 0; i < 2; ++i) {
    check_linears(devices[i]);
    check_transforms(devices[i]);
    check_text(devices[i]);
    check_wrong_use(devices[i], devices[1 - i]);
  }

  // Handles may go in any order.
  octet_weight* weight = NULL;
  const octet_weight_rows rows = rows_of_weight();
  CHECK(octet_weight_create(cpu, &rows, &weight) == OCTET_OK);
  octet_device_free(cpu);
  octet_weight_free(weight);
  octet_device_free(ref);
  return failures != 0;
}
