//! libpickd-body as `pickd/body.h` declares it. Kept to the same form as lib.rs, and compared with
//! the header by the same test.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::{pickd_attribute, pickd_report_info, pickd_request, pickd_slice};

/// Opaque.
#[repr(C)]
pub struct pickd_body_counters {
    _opaque: [u8; 0],
}

/// Opaque.
#[repr(C)]
pub struct pickd_body {
    _opaque: [u8; 0],
}

/// Opaque.
#[repr(C)]
pub struct pickd_answer {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_body_options {
    pub struct_size: usize,
    pub body_bytes_max: usize,
    pub keep_bytes_max: usize,
    pub media_tokens: u32,
    pub flags: u32,
    pub session_header: *const c_char,
    pub counters: *mut pickd_body_counters,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_body_head {
    pub struct_size: usize,
    pub path: pickd_slice,
    pub headers: *const pickd_attribute,
    pub header_count: usize,
    pub header_stride: usize,
    pub tenant: pickd_slice,
    pub body_bytes: usize,
}

pub const PICKD_BODY_LONGEST: usize = usize::MAX;

pub type pickd_body_api = c_uint;
pub const PICKD_BODY_UNKNOWN: pickd_body_api = 0;
pub const PICKD_BODY_COMPLETIONS: pickd_body_api = 1;
pub const PICKD_BODY_CHAT: pickd_body_api = 2;
pub const PICKD_BODY_RESPONSES: pickd_body_api = 3;
pub const PICKD_BODY_EMBEDDINGS: pickd_body_api = 4;
pub const PICKD_BODY_MESSAGES: pickd_body_api = 5;
pub const PICKD_BODY_SGLANG: pickd_body_api = 6;
pub const PICKD_BODY_VLLM: pickd_body_api = 7;

pub const PICKD_BODY_STREAM: u32 = 1;
pub const PICKD_BODY_USAGE: u32 = 2;
pub const PICKD_BODY_OPEN_END: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_body_info {
    pub struct_size: usize,
    pub api: pickd_body_api,
    pub status: i32,
    pub flags: u32,
    pub n: u32,
    pub max_tokens: u32,
    pub prompt_count: u32,
    pub media_count: u32,
    pub reserved: u32,
    pub model: pickd_slice,
    pub adapter: pickd_slice,
    pub salt: pickd_slice,
    pub session_id: pickd_slice,
    pub request_id: pickd_slice,
    pub fairness_id: pickd_slice,
    pub bytes: pickd_slice,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_answer_options {
    pub struct_size: usize,
    pub answer_bytes_max: usize,
    pub text_bytes_max: usize,
    pub keep_bytes_max: usize,
    pub counters: *mut pickd_body_counters,
}

pub const PICKD_ANSWER_KEEP_TEXT: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pickd_answer_head {
    pub struct_size: usize,
    pub api: pickd_body_api,
    pub status: i32,
    pub headers: *const pickd_attribute,
    pub header_count: usize,
    pub header_stride: usize,
    pub flags: u32,
}

pub const PICKD_ANSWER_FIRST_TOKEN: c_int = 1;
pub const PICKD_ANSWER_TOKENS: c_int = 2;
pub const PICKD_ANSWER_USAGE: c_int = 4;
pub const PICKD_ANSWER_ENDED: c_int = 8;

extern "C" {
    pub fn pickd_body_counters_new() -> *mut pickd_body_counters;
    pub fn pickd_body_counters_free(counters: *mut pickd_body_counters);
    pub fn pickd_body_counter_name(index: usize, help: *mut *const c_char) -> *const c_char;
    pub fn pickd_body_counter_value(counters: *const pickd_body_counters, index: usize) -> u64;

    pub fn pickd_body_new(options: *const pickd_body_options, body: *mut *mut pickd_body) -> c_int;
    pub fn pickd_body_free(body: *mut pickd_body);
    pub fn pickd_body_begin(body: *mut pickd_body, head: *const pickd_body_head) -> c_int;
    pub fn pickd_body_add(body: *mut pickd_body, data: *const c_void, size: usize) -> c_int;
    pub fn pickd_body_end(body: *mut pickd_body) -> c_int;
    pub fn pickd_body_request(
        body: *const pickd_body,
        index: usize,
        request: *mut pickd_request,
    ) -> c_int;
    pub fn pickd_body_read_info(body: *const pickd_body, info: *mut pickd_body_info) -> c_int;

    pub fn pickd_answer_new(
        options: *const pickd_answer_options,
        answer: *mut *mut pickd_answer,
    ) -> c_int;
    pub fn pickd_answer_free(answer: *mut pickd_answer);
    pub fn pickd_answer_begin(answer: *mut pickd_answer, head: *const pickd_answer_head) -> c_int;
    pub fn pickd_answer_add(answer: *mut pickd_answer, data: *const c_void, size: usize) -> c_int;
    pub fn pickd_answer_end(answer: *mut pickd_answer) -> c_int;
    pub fn pickd_answer_report(
        answer: *const pickd_answer,
        report: *mut pickd_report_info,
    ) -> c_int;
    pub fn pickd_body_append(body: *mut pickd_body, answer: *const pickd_answer) -> c_int;

    pub fn pickd_body_strerror(error: c_int) -> *const c_char;
}
