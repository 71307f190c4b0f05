//! libpickd as `pickd/pickd.h` declares it, with the feature `body` also libpickd-body as
//! `pickd/body.h` does. The headers are the manual; the crate `pickd` is what programs use.
//!
//! A test compares every type, constant and function here with the headers, by the C compiler. It
//! reads this file as text, so declarations keep to one form: one field, constant or function each.
#![no_std]
#![allow(non_camel_case_types, missing_docs)]

#[cfg(feature = "body")]
pub mod body;

use core::ffi::{c_char, c_double, c_int, c_uint, c_void};

// ---- Small types --------------------------------------------------------------------------------

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_slice {
    pub data: *const c_void,
    pub size: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct pickd_ticket {
    pub client: u64,
    pub sequence: u64,
}

pub const PICKD_UNKNOWN: u32 = u32::MAX;
pub const PICKD_NO_DEADLINE: i64 = i64::MAX;
pub const PICKD_NO_SPIN: u32 = u32::MAX;

pub type pickd_role = c_uint;
pub const PICKD_ROLE_BOTH: pickd_role = 0;
pub const PICKD_ROLE_DECODE: pickd_role = 1;
pub const PICKD_ROLE_PREFILL: pickd_role = 2;
pub const PICKD_ROLE_ENCODE: pickd_role = 3;

// ---- Client -------------------------------------------------------------------------------------

/// Opaque.
#[repr(C)]
pub struct pickd_client {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_options {
    pub struct_size: usize,
    pub socket_path: *const c_char,
    pub name: *const c_char,
    pub keys_max: u32,
    pub channels_max: u32,
    pub spin_us: u32,
    pub connect_timeout_ms: u32,
    pub flags: u32,
    pub error: *mut c_char,
    pub error_size: usize,
}

pub const PICKD_OPEN_BUSY_POLL: u32 = 1;

// ---- Request ------------------------------------------------------------------------------------

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_extra {
    pub offset: usize,
    pub digest: pickd_slice,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_attribute {
    pub key: pickd_slice,
    pub value: pickd_slice,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_request {
    pub struct_size: usize,
    pub model: pickd_slice,
    pub adapter: pickd_slice,
    pub salt: pickd_slice,
    pub text: *const pickd_slice,
    pub text_count: usize,
    pub token_ids: *const u32,
    pub token_count: usize,
    pub prompt_tokens: u32,
    pub extras: *const pickd_extra,
    pub extra_count: usize,
    pub extra_stride: usize,
    pub session_id: pickd_slice,
    pub fairness_id: pickd_slice,
    pub request_id: pickd_slice,
    pub subset: *const pickd_slice,
    pub subset_count: usize,
    pub attributes: *const pickd_attribute,
    pub attribute_count: usize,
    pub attribute_stride: usize,
    pub slo_ttft_ms: c_double,
    pub slo_itl_ms: c_double,
    pub priority: i32,
    pub expected_output_tokens: u32,
    pub endpoints_max: u32,
    pub flags: u32,
    pub queue_timeout_us: i64,
}

pub const PICKD_REQUEST_STREAM: u32 = 1;
pub const PICKD_REQUEST_SUBSET: u32 = 2;
pub const PICKD_REQUEST_DRY_RUN: u32 = 4;
pub const PICKD_REQUEST_MEDIA: u32 = 8;

// ---- Result -------------------------------------------------------------------------------------

/// Opaque.
#[repr(C)]
pub struct pickd_result {
    _opaque: [u8; 0],
}

pub type pickd_reason = c_uint;
pub const PICKD_REASON_NONE: pickd_reason = 0;
pub const PICKD_REASON_SCORE: pickd_reason = 1;
pub const PICKD_REASON_TIE: pickd_reason = 2;
pub const PICKD_REASON_PREFIX: pickd_reason = 3;
pub const PICKD_REASON_SESSION: pickd_reason = 4;
pub const PICKD_REASON_ONLY: pickd_reason = 5;
pub const PICKD_REASON_POLICY: pickd_reason = 6;
pub const PICKD_REASON_FALLBACK: pickd_reason = 7;
pub const PICKD_REASON_DEGRADED: pickd_reason = 8;
pub const PICKD_REASON_UNPREDICTED: pickd_reason = 9;

pub const PICKD_RESULT_CUT: u32 = 1;
pub const PICKD_RESULT_DEGRADED: u32 = 2;

// ---- Reports ------------------------------------------------------------------------------------

pub type pickd_report_kind = c_uint;
pub const PICKD_REPORT_FIRST_TOKEN: pickd_report_kind = 1;
pub const PICKD_REPORT_PROGRESS: pickd_report_kind = 2;
pub const PICKD_REPORT_DONE: pickd_report_kind = 3;
pub const PICKD_REPORT_FAILED: pickd_report_kind = 4;
pub const PICKD_REPORT_FALLBACK: pickd_report_kind = 5;
pub const PICKD_REPORT_CANCELLED: pickd_report_kind = 6;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_report_info {
    pub struct_size: usize,
    pub ticket: pickd_ticket,
    pub kind: pickd_report_kind,
    pub prompt_tokens: u32,
    pub cached_tokens: u32,
    pub output_tokens: u32,
    pub endpoint: pickd_slice,
}

// ---- Queues and endpoints -----------------------------------------------------------------------

/// Opaque.
#[repr(C)]
pub struct pickd_queue {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_label {
    pub key: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_endpoint {
    pub struct_size: usize,
    pub name: *const c_char,
    pub address: *const c_char,
    pub pool: *const c_char,
    pub role: pickd_role,
    pub models: *const *const c_char,
    pub model_count: usize,
    pub labels: *const pickd_label,
    pub label_count: usize,
    pub capacity_tokens: u64,
    pub waiting: u32,
    pub running: u32,
    pub kv_use_ppm: u32,
    pub adapters_max: u32,
    pub adapters_active: *const *const c_char,
    pub adapter_active_count: usize,
    pub adapters_waiting: *const *const c_char,
    pub adapter_waiting_count: usize,
}

// ---- Functions ----------------------------------------------------------------------------------

extern "C" {
    pub fn pickd_string(text: *const c_char) -> pickd_slice;

    pub fn pickd_open(options: *const pickd_options, client: *mut *mut pickd_client) -> c_int;
    pub fn pickd_close(client: *mut pickd_client);
    pub fn pickd_daemon_info(
        client: *mut pickd_client,
        block_tokens: *mut u32,
        keys_max: *mut u32,
        version: *mut *const c_char,
    ) -> c_int;
    pub fn pickd_last_error(client: *mut pickd_client, buffer: *mut c_char, size: usize) -> usize;

    pub fn pickd_result_new() -> *mut pickd_result;
    pub fn pickd_result_free(result: *mut pickd_result);
    pub fn pickd_result_status(result: *const pickd_result) -> c_int;
    pub fn pickd_result_ticket(result: *const pickd_result) -> pickd_ticket;
    pub fn pickd_result_reason(result: *const pickd_result) -> pickd_reason;
    pub fn pickd_result_flags(result: *const pickd_result) -> u32;
    pub fn pickd_result_endpoint_count(result: *const pickd_result) -> usize;
    pub fn pickd_result_address(result: *const pickd_result, index: usize) -> *const c_char;
    pub fn pickd_result_name(result: *const pickd_result, index: usize) -> *const c_char;
    pub fn pickd_result_role(result: *const pickd_result, index: usize) -> pickd_role;
    pub fn pickd_result_match_tokens(result: *const pickd_result, index: usize) -> u32;
    pub fn pickd_result_score(result: *const pickd_result, index: usize) -> c_double;
    pub fn pickd_result_prompt_tokens(result: *const pickd_result) -> u32;
    pub fn pickd_result_ttft_ms(result: *const pickd_result) -> c_double;
    pub fn pickd_result_itl_ms(result: *const pickd_result) -> c_double;
    pub fn pickd_result_prefill_address(result: *const pickd_result) -> *const c_char;
    pub fn pickd_result_prefill_name(result: *const pickd_result) -> *const c_char;
    pub fn pickd_result_prefill_match_tokens(result: *const pickd_result) -> u32;
    pub fn pickd_result_encode_address(result: *const pickd_result) -> *const c_char;
    pub fn pickd_result_encode_name(result: *const pickd_result) -> *const c_char;
    pub fn pickd_result_hash_ns(result: *const pickd_result) -> u64;

    pub fn pickd_pick(
        client: *mut pickd_client,
        request: *const pickd_request,
        timeout_us: i64,
        result: *mut pickd_result,
    ) -> c_int;
    pub fn pickd_report(
        client: *mut pickd_client,
        report: *const pickd_report_info,
        timeout_us: i64,
    ) -> c_int;

    pub fn pickd_queue_open(
        client: *mut pickd_client,
        depth: u32,
        queue: *mut *mut pickd_queue,
    ) -> c_int;
    pub fn pickd_queue_close(queue: *mut pickd_queue);
    pub fn pickd_queue_submit(
        queue: *mut pickd_queue,
        request: *const pickd_request,
        user_data: u64,
        ticket: *mut pickd_ticket,
    ) -> c_int;
    pub fn pickd_queue_poll(
        queue: *mut pickd_queue,
        result: *mut pickd_result,
        user_data: *mut u64,
    ) -> c_int;
    pub fn pickd_queue_cancel(queue: *mut pickd_queue, ticket: pickd_ticket) -> c_int;
    pub fn pickd_queue_report(queue: *mut pickd_queue, report: *const pickd_report_info) -> c_int;
    pub fn pickd_queue_event_fd(queue: *mut pickd_queue) -> c_int;

    pub fn pickd_endpoint_add(client: *mut pickd_client, endpoint: *const pickd_endpoint) -> c_int;
    pub fn pickd_endpoint_update(
        client: *mut pickd_client,
        endpoint: *const pickd_endpoint,
    ) -> c_int;
    pub fn pickd_endpoint_remove(client: *mut pickd_client, name: *const c_char) -> c_int;
    pub fn pickd_endpoint_drain(client: *mut pickd_client, name: *const c_char, on: c_int)
        -> c_int;
    pub fn pickd_endpoint_reset(client: *mut pickd_client, name: *const c_char) -> c_int;

    pub fn pickd_strerror(error: c_int) -> *const c_char;
    pub fn pickd_reason_name(reason: pickd_reason) -> *const c_char;
    pub fn pickd_version() -> *const c_char;
}
