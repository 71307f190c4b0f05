//! Changes of endpoints, for those whom the daemon's configuration lets make them.

use std::ffi::{c_char, CString};

use pickd_sys as sys;

use crate::client::Client;
use crate::error::Error;
use crate::options::terminated;
use crate::pick::Role;

/// An endpoint: one engine, or one data-parallel rank of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSpec {
    /// Unique, 1 to 127 bytes.
    pub name: String,
    /// "host:port" or a URL, 1 to 127 bytes; handed out as it is.
    pub address: String,
    /// None: "default".
    pub pool: Option<String>,
    /// What it does of requests.
    pub role: Role,
    /// Empty: serves any model. At most 64.
    pub models: Vec<String>,
    /// Key and value. At most 64.
    pub labels: Vec<(String, String)>,
    /// KV cache of the engine in tokens; 0: the configured capacity.
    pub capacity_tokens: u64,
    /// Requests queued in the engine, where that is known.
    pub waiting: Option<u32>,
    /// Requests running in the engine, where that is known.
    pub running: Option<u32>,
    /// KV cache in use in parts per million, where that is known.
    pub kv_use_ppm: Option<u32>,
    /// LoRA adapters that it can hold; 0: not told.
    pub adapters_max: u32,
    /// Adapters in the engine. At most 16.
    pub adapters_active: Vec<String>,
    /// Adapters that wait for room in the engine. At most 16.
    pub adapters_waiting: Vec<String>,
}

impl EndpointSpec {
    /// An endpoint of which nothing more is known.
    pub fn new(name: impl Into<String>, address: impl Into<String>) -> EndpointSpec {
        EndpointSpec { name: name.into(), address: address.into(), ..EndpointSpec::default() }
    }
}

/// Strings for C, and the list of pointers to them.
struct Strings {
    _owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new<'a>(from: impl IntoIterator<Item = &'a String>) -> Result<Strings, Error> {
        let owned: Vec<CString> = from.into_iter().map(terminated).collect::<Result<_, _>>()?;
        // A CString's bytes stay where they are when it is moved.
        let pointers = owned.iter().map(|text| text.as_ptr()).collect();
        Ok(Strings { _owned: owned, pointers })
    }
}

/// Each waits for the daemon and returns its word. They are for the users in `listen.admin_uids`;
/// others get [`Code::Permission`](crate::Code::Permission). Endpoints stay when the client closes.
impl Client {
    /// Adds an endpoint.
    ///
    /// # Errors
    /// [`Code::Exists`](crate::Code::Exists) when the name is taken,
    /// [`Code::TooBig`](crate::Code::TooBig) when the table is full.
    pub fn add_endpoint(&self, endpoint: &EndpointSpec) -> Result<(), Error> {
        self.with_spec("add endpoint", endpoint, sys::pickd_endpoint_add)
    }

    /// Replaces all that was told of an endpoint. A new address is a new engine: its prefixes and
    /// in-flight counts start from nothing.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound).
    pub fn update_endpoint(&self, endpoint: &EndpointSpec) -> Result<(), Error> {
        self.with_spec("update endpoint", endpoint, sys::pickd_endpoint_update)
    }

    /// Removes an endpoint; its prefixes are dead when this returns.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound).
    pub fn remove_endpoint(&self, name: &str) -> Result<(), Error> {
        let name = terminated(name)?;
        // SAFETY: terminated, and good for the call.
        let code = unsafe { sys::pickd_endpoint_remove(self.handle.as_ptr(), name.as_ptr()) };
        self.handle.check("remove endpoint", code)
    }

    /// Lets no new picks go there, until it is taken back with `on` false.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound).
    pub fn drain_endpoint(&self, name: &str, on: bool) -> Result<(), Error> {
        let name = terminated(name)?;
        // SAFETY: as above.
        let code =
            unsafe { sys::pickd_endpoint_drain(self.handle.as_ptr(), name.as_ptr(), on.into()) };
        self.handle.check("drain endpoint", code)
    }

    /// Says that the engine was restarted or its cache cleared: prefixes and counts start from
    /// nothing.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound).
    pub fn reset_endpoint(&self, name: &str) -> Result<(), Error> {
        let name = terminated(name)?;
        // SAFETY: as above.
        let code = unsafe { sys::pickd_endpoint_reset(self.handle.as_ptr(), name.as_ptr()) };
        self.handle.check("reset endpoint", code)
    }

    fn with_spec(
        &self,
        op: &'static str,
        spec: &EndpointSpec,
        call: unsafe extern "C" fn(*mut sys::pickd_client, *const sys::pickd_endpoint) -> i32,
    ) -> Result<(), Error> {
        let (name, address) = (terminated(&spec.name)?, terminated(&spec.address)?);
        let pool = spec.pool.as_ref().map(terminated).transpose()?;
        let models = Strings::new(&spec.models)?;
        let keys = Strings::new(spec.labels.iter().map(|label| &label.0))?;
        let values = Strings::new(spec.labels.iter().map(|label| &label.1))?;
        let labels: Vec<sys::pickd_label> = keys
            .pointers
            .iter()
            .zip(&values.pointers)
            .map(|(&key, &value)| sys::pickd_label { key, value })
            .collect();
        let active = Strings::new(&spec.adapters_active)?;
        let waiting = Strings::new(&spec.adapters_waiting)?;
        let raw = sys::pickd_endpoint {
            struct_size: std::mem::size_of::<sys::pickd_endpoint>(),
            name: name.as_ptr(),
            address: address.as_ptr(),
            pool: pool.as_ref().map_or(std::ptr::null(), |pool| pool.as_ptr()),
            role: spec.role.raw(),
            models: models.pointers.as_ptr(),
            model_count: models.pointers.len(),
            labels: labels.as_ptr(),
            label_count: labels.len(),
            capacity_tokens: spec.capacity_tokens,
            waiting: spec.waiting.unwrap_or(sys::PICKD_UNKNOWN),
            running: spec.running.unwrap_or(sys::PICKD_UNKNOWN),
            kv_use_ppm: spec.kv_use_ppm.unwrap_or(sys::PICKD_UNKNOWN),
            adapters_max: spec.adapters_max,
            adapters_active: active.pointers.as_ptr(),
            adapter_active_count: active.pointers.len(),
            adapters_waiting: waiting.pointers.as_ptr(),
            adapter_waiting_count: waiting.pointers.len(),
        };
        // SAFETY: all that it points to is of this frame.
        let code = unsafe { call(self.handle.as_ptr(), &raw) };
        self.handle.check(op, code)
    }
}
