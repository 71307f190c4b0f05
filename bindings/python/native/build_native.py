"""Builds pickd._native: libpickd and libpickd-body for Python, by cffi in API mode. Run by setup.py.

The declarations below are what Python uses. Structs end in "...": the C compiler, which has the real headers, tells
cffi how they are laid out, so nothing here depends on offsets.
"""
import os
import shlex
import subprocess

from cffi import FFI

STRUCTS = """
typedef struct { const void *data; size_t size; } pickd_slice;
typedef struct { uint64_t client; uint64_t sequence; } pickd_ticket;
typedef int... pickd_role;
typedef int... pickd_report_kind;
typedef int... pickd_body_api;
typedef ... pickd_client;
typedef ... pickd_result;
typedef ... pickd_body;
typedef ... pickd_answer;
typedef ... pickd_body_counters;

typedef struct {
  size_t struct_size; const char *socket_path; const char *name; uint32_t keys_max; uint32_t channels_max;
  uint32_t spin_us; uint32_t connect_timeout_ms; uint32_t flags; char *error; size_t error_size; ...;
} pickd_options;

typedef struct { size_t offset; pickd_slice digest; ...; } pickd_extra;
typedef struct { pickd_slice key; pickd_slice value; ...; } pickd_attribute;

typedef struct {
  size_t struct_size; pickd_slice model; pickd_slice adapter; pickd_slice salt;
  const pickd_slice *text; size_t text_count; const uint32_t *token_ids; size_t token_count; uint32_t prompt_tokens;
  const pickd_extra *extras; size_t extra_count; size_t extra_stride;
  pickd_slice session_id; pickd_slice fairness_id; pickd_slice request_id;
  const pickd_slice *subset; size_t subset_count;
  const pickd_attribute *attributes; size_t attribute_count; size_t attribute_stride;
  double slo_ttft_ms; double slo_itl_ms; int32_t priority; uint32_t expected_output_tokens; uint32_t endpoints_max;
  uint32_t flags; int64_t queue_timeout_us; ...;
} pickd_request;

typedef struct {
  size_t struct_size; pickd_ticket ticket; pickd_report_kind kind; uint32_t prompt_tokens; uint32_t cached_tokens;
  uint32_t output_tokens; pickd_slice endpoint; ...;
} pickd_report_info;

typedef struct { const char *key; const char *value; ...; } pickd_label;
typedef struct {
  size_t struct_size; const char *name; const char *address; const char *pool; pickd_role role;
  const char *const *models; size_t model_count; const pickd_label *labels; size_t label_count;
  uint64_t capacity_tokens; uint32_t waiting; uint32_t running; uint32_t kv_use_ppm; ...;
} pickd_endpoint;

typedef struct { uint64_t client; uint64_t sequence; uint8_t answers[...]; ...; } pickdpy_queue;

typedef struct {
  size_t struct_size; size_t body_bytes_max; size_t keep_bytes_max; uint32_t media_tokens; uint32_t flags;
  const char *session_header; pickd_body_counters *counters; ...;
} pickd_body_options;
typedef struct {
  size_t struct_size; pickd_slice path; const pickd_attribute *headers; size_t header_count; size_t header_stride;
  pickd_slice tenant; size_t body_bytes; ...;
} pickd_body_head;
typedef struct {
  size_t struct_size; pickd_body_api api; int32_t status; uint32_t flags; uint32_t n; uint32_t max_tokens;
  uint32_t prompt_count; uint32_t media_count; pickd_slice model; pickd_slice adapter; pickd_slice salt;
  pickd_slice session_id; pickd_slice request_id; pickd_slice fairness_id; pickd_slice bytes; ...;
} pickd_body_info;
typedef struct {
  size_t struct_size; size_t answer_bytes_max; size_t text_bytes_max; size_t keep_bytes_max;
  pickd_body_counters *counters; ...;
} pickd_answer_options;
typedef struct {
  size_t struct_size; pickd_body_api api; int32_t status; const pickd_attribute *headers; size_t header_count;
  size_t header_stride; uint32_t flags; ...;
} pickd_answer_head;
"""

FUNCTIONS = """
int pickd_open(const pickd_options *options, pickd_client **client);
void pickd_close(pickd_client *client);
int pickd_daemon_info(pickd_client *client, uint32_t *block_tokens, uint32_t *keys_max, const char **version);
size_t pickd_last_error(pickd_client *client, char *buffer, size_t size);
pickd_result *pickd_result_new(void);
void pickd_result_free(pickd_result *result);
int pickd_report(pickd_client *client, const pickd_report_info *report, int64_t timeout_us);
int pickd_endpoint_add(pickd_client *client, const pickd_endpoint *endpoint);
int pickd_endpoint_update(pickd_client *client, const pickd_endpoint *endpoint);
int pickd_endpoint_remove(pickd_client *client, const char *name);
int pickd_endpoint_drain(pickd_client *client, const char *name, int on);
int pickd_endpoint_reset(pickd_client *client, const char *name);
const char *pickd_strerror(int error);
const char *pickd_version(void);

int pickdpy_pick(pickd_client *client, const pickd_request *request, int64_t timeout_us, pickd_result *result,
                 void *answer);
int pickdpy_queue_open(pickd_client *client, uint32_t depth, pickdpy_queue **queue);
void pickdpy_queue_close(pickdpy_queue *queue);
int pickdpy_queue_submit(pickdpy_queue *queue, const pickd_request *request, uint64_t user_data);
int pickdpy_queue_poll(pickdpy_queue *queue, int64_t look_ns);
int pickdpy_queue_cancel(pickdpy_queue *queue, uint64_t client, uint64_t sequence);
int pickdpy_queue_report(pickdpy_queue *queue, const pickd_report_info *report);
int pickdpy_queue_event_fd(pickdpy_queue *queue);
size_t pickdpy_join_size(const pickd_slice *slices, size_t count);
void pickdpy_join(const pickd_slice *slices, size_t count, void *to);

pickd_body_counters *pickd_body_counters_new(void);
void pickd_body_counters_free(pickd_body_counters *counters);
const char *pickd_body_counter_name(size_t index, const char **help);
uint64_t pickd_body_counter_value(const pickd_body_counters *counters, size_t index);
int pickd_body_new(const pickd_body_options *options, pickd_body **body);
void pickd_body_free(pickd_body *body);
int pickd_body_begin(pickd_body *body, const pickd_body_head *head);
int pickd_body_add(pickd_body *body, const void *data, size_t size);
int pickd_body_end(pickd_body *body);
int pickd_body_request(const pickd_body *body, size_t index, pickd_request *request);
int pickd_body_read_info(const pickd_body *body, pickd_body_info *info);
int pickd_body_append(pickd_body *body, const pickd_answer *answer);
int pickd_answer_new(const pickd_answer_options *options, pickd_answer **answer);
void pickd_answer_free(pickd_answer *answer);
int pickd_answer_begin(pickd_answer *answer, const pickd_answer_head *head);
int pickd_answer_add(pickd_answer *answer, const void *data, size_t size);
int pickd_answer_end(pickd_answer *answer);
int pickd_answer_report(const pickd_answer *answer, pickd_report_info *report);
const char *pickd_body_strerror(int error);
"""

CONSTANTS = """
#define PICKD_UNKNOWN ...
#define PICKD_NO_DEADLINE ...
#define PICKD_NO_SPIN ...
#define PICKD_OPEN_BUSY_POLL ...
#define PICKD_REQUEST_STREAM ...
#define PICKD_REQUEST_SUBSET ...
#define PICKD_REQUEST_DRY_RUN ...
#define PICKD_REQUEST_MEDIA ...
#define PICKD_RESULT_CUT ...
#define PICKD_RESULT_DEGRADED ...
#define PICKDPY_BATCH ...
#define PICKDPY_ANSWER_BYTES ...
#define PICKD_BODY_STREAM ...
#define PICKD_BODY_USAGE ...
#define PICKD_BODY_OPEN_END ...
#define PICKD_ANSWER_KEEP_TEXT ...
"""


def flags():
    """What pkg-config says of both libraries, in the words of setuptools."""
    said = subprocess.run(["pkg-config", "--cflags", "--libs", "pickd", "pickd-body"], capture_output=True, text=True,
                          check=False)
    if said.returncode != 0:
        raise SystemExit(f"pkg-config does not know pickd and pickd-body: {said.stderr.strip()}\n"
                         "Install pickd's development package, or set PKG_CONFIG_PATH to build/release/pkgconfig of a "
                         "build tree.")
    words = shlex.split(said.stdout)
    compile_flags = [word for word in words if word.startswith(("-I", "-D"))]
    return {"extra_compile_args": ["-O2", *compile_flags],
            "extra_link_args": [word for word in words if word not in compile_flags]}


HERE = os.path.dirname(os.path.abspath(__file__))
builder = FFI()
builder.cdef(STRUCTS + FUNCTIONS + CONSTANTS)
made = flags()
made["extra_compile_args"].append("-I" + HERE)
# The path is relative, as setuptools wants it: setup.py runs in the folder above.
builder.set_source("pickd._native", '#include "bridge.h"', sources=["native/bridge.c"], **made)
