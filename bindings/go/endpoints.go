// Endpoint changes: blocking calls of libpickd, beside the queues.

package pickd

// #include <stdlib.h>
// #include <pickd/pickd.h>
import "C"

import (
	"context"
	"unsafe"
)

// An EndpointSpec is what the daemon is told of an endpoint: one engine, or one data-parallel rank of it.
type EndpointSpec struct {
	Name    string // unique, 1 to 127 bytes
	Address string // "host:port" or a URL, 1 to 127 bytes; handed out as it is
	Pool    string // empty: "default"
	Role    Role
	Models  []string // empty: serves any model; at most 64
	Labels  map[string]string

	CapacityTokens uint64 // KV cache of the engine in tokens; 0: the configured capacity
}

// AddEndpoint adds an endpoint: [ErrExists] when the name is taken, [ErrTooBig] when the table is full.
//
// Changes of endpoints are for the users in listen.admin_uids of the daemon, else [ErrPermission]. They wait
// for the daemon's word and hold an operating system thread meanwhile.
func (c *Client) AddEndpoint(ctx context.Context, endpoint EndpointSpec) error {
	return c.change(ctx, "add endpoint", endpoint, func(raw *C.pickd_endpoint) C.int {
		return C.pickd_endpoint_add(c.handle, raw)
	})
}

// UpdateEndpoint replaces what is known of an endpoint; [ErrNotFound]. A new address is a new engine: its
// prefixes and in-flight counts start from nothing.
func (c *Client) UpdateEndpoint(ctx context.Context, endpoint EndpointSpec) error {
	return c.change(ctx, "update endpoint", endpoint, func(raw *C.pickd_endpoint) C.int {
		return C.pickd_endpoint_update(c.handle, raw)
	})
}

// RemoveEndpoint removes an endpoint; its prefixes are dead when this returns. [ErrNotFound].
func (c *Client) RemoveEndpoint(ctx context.Context, name string) error {
	return c.named(ctx, "remove endpoint", name, func(raw *C.char) C.int {
		return C.pickd_endpoint_remove(c.handle, raw)
	})
}

// DrainEndpoint lets no new picks go to an endpoint, or lets them in again. [ErrNotFound].
func (c *Client) DrainEndpoint(ctx context.Context, name string, on bool) error {
	return c.named(ctx, "drain endpoint", name, func(raw *C.char) C.int {
		var drain C.int
		if on {
			drain = 1
		}
		return C.pickd_endpoint_drain(c.handle, raw, drain)
	})
}

// ResetEndpoint forgets what an endpoint had cached and in flight: its engine was restarted. [ErrNotFound].
func (c *Client) ResetEndpoint(ctx context.Context, name string) error {
	return c.named(ctx, "reset endpoint", name, func(raw *C.char) C.int {
		return C.pickd_endpoint_reset(c.handle, raw)
	})
}

func (c *Client) named(ctx context.Context, op, name string, call func(*C.char) C.int) error {
	raw := C.CString(name)
	defer C.free(unsafe.Pointer(raw))
	return c.blocking(ctx, op, func(C.int64_t) C.int { return call(raw) })
}

func (c *Client) change(ctx context.Context, op string, endpoint EndpointSpec,
	call func(*C.pickd_endpoint) C.int) error {
	var owned cStrings
	defer owned.free()
	raw := C.pickd_endpoint{
		struct_size:     C.sizeof_pickd_endpoint,
		name:            owned.add(endpoint.Name),
		address:         owned.add(endpoint.Address),
		role:            C.pickd_role(endpoint.Role),
		capacity_tokens: C.uint64_t(endpoint.CapacityTokens),
		waiting:         C.PICKD_UNKNOWN,
		running:         C.PICKD_UNKNOWN,
		kv_use_ppm:      C.PICKD_UNKNOWN,
	}
	if endpoint.Pool != "" {
		raw.pool = owned.add(endpoint.Pool)
	}
	if count := len(endpoint.Models); count > 0 {
		models := (**C.char)(owned.allocate(count * int(unsafe.Sizeof(raw.name))))
		for at, model := range endpoint.Models {
			unsafe.Slice(models, count)[at] = owned.add(model)
		}
		raw.models, raw.model_count = models, C.size_t(count)
	}
	if count := len(endpoint.Labels); count > 0 {
		labels := (*C.pickd_label)(owned.allocate(count * C.sizeof_pickd_label))
		at := 0
		for key, value := range endpoint.Labels {
			unsafe.Slice(labels, count)[at] = C.pickd_label{owned.add(key), owned.add(value)}
			at++
		}
		raw.labels, raw.label_count = labels, C.size_t(count)
	}
	return c.blocking(ctx, op, func(C.int64_t) C.int { return call(&raw) })
}

// cStrings is C memory with one owner.
type cStrings []unsafe.Pointer

func (s *cStrings) add(text string) *C.char {
	raw := C.CString(text)
	*s = append(*s, unsafe.Pointer(raw))
	return raw
}

func (s *cStrings) allocate(size int) unsafe.Pointer {
	raw := C.calloc(1, C.size_t(size))
	*s = append(*s, raw)
	return raw
}

func (s *cStrings) free() {
	for _, raw := range *s {
		C.free(raw)
	}
}
