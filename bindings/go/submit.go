// A Request in C memory, for the time of one call. The only file that knows how libpickd's
// request is laid out.

package pickd

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

// submit fills the request in C memory and submits it; under mutex. Long text is not copied: one
// segment is an argument of the call, several are pinned for its time. Returns 1 when the answer is there too.
func (q *queue) submit(request *Request, timeoutMicro int64, slot uint32, look time.Duration) C.int {
	s := &q.scratch
	s.reset(sizeOf(request))
	to := &q.memory.request
	to.model = s.text(request.Model)
	to.adapter = s.text(request.Adapter)
	to.salt = s.text(request.Salt)
	to.session_id = s.text(request.SessionID)
	to.fairness_id = s.text(request.FairnessID)
	to.request_id = s.text(request.RequestID)
	to.extras, to.extra_count = s.extras(request.Extras)
	to.attributes, to.attribute_count = s.attributes(request.Attributes)
	to.subset, to.subset_count = s.strings(request.Subset)
	to.slo_ttft_ms = C.double(milliseconds(request.SLOTTFT))
	to.slo_itl_ms = C.double(milliseconds(request.SLOITL))
	to.timeout_us = C.int64_t(timeoutMicro)
	to.priority = C.int32_t(min(max(request.Priority, -1<<31), 1<<31-1))
	to.prompt_tokens = C.uint32_t(unsigned(request.PromptTokens))
	to.expected_output_tokens = C.uint32_t(unsigned(request.ExpectedOutputTokens))
	to.endpoints_max = C.uint32_t(unsigned(request.EndpointsMax))
	to.flags = 0
	if request.Stream {
		to.flags |= C.PICKD_REQUEST_STREAM
	}
	if request.Media {
		to.flags |= C.PICKD_REQUEST_MEDIA
	}
	if request.DryRun {
		to.flags |= C.PICKD_REQUEST_DRY_RUN
	}
	if request.Subset != nil {
		to.flags |= C.PICKD_REQUEST_SUBSET
	}
	to.segments, to.segment_count = 0, 0
	ids := (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(request.TokenIDs)))
	idCount := C.size_t(len(request.TokenIDs))
	if len(request.Text) > 1 {
		var pinner runtime.Pinner
		defer pinner.Unpin()
		to.segments, to.segment_count = s.pinned(request.Text, &pinner)
		return C.pickdgo_submit(q.address, nil, 0, ids, idCount, C.uint64_t(slot), C.int64_t(look))
	}
	var text string
	if len(request.Text) == 1 {
		text = request.Text[0]
	}
	return C.pickdgo_submit(q.address, unsafe.Pointer(unsafe.StringData(text)), C.size_t(len(text)), ids,
		idCount, C.uint64_t(slot), C.int64_t(look))
}

// sizeOf is how much scratch memory a request needs at most.
func sizeOf(request *Request) int {
	const array = 8 // what aligning an array may take
	size := len(request.Model) + len(request.Adapter) + len(request.Salt) + len(request.SessionID) +
		len(request.FairnessID) + len(request.RequestID)
	if len(request.Text) > 1 {
		size += array + len(request.Text)*C.sizeof_pickdgo_slice
	}
	if request.Subset != nil {
		size += array + len(request.Subset)*C.sizeof_pickdgo_slice
		for _, name := range request.Subset {
			size += len(name)
		}
	}
	if len(request.Extras) > 0 {
		size += array + len(request.Extras)*C.sizeof_pickdgo_extra
		for _, extra := range request.Extras {
			size += len(extra.Digest)
		}
	}
	if len(request.Attributes) > 0 {
		size += array + len(request.Attributes)*C.sizeof_pickdgo_attribute
		for _, attribute := range request.Attributes {
			size += len(attribute.Key) + len(attribute.Value)
		}
	}
	return size
}

// A scratch is C memory for what a request points to. The library reads it before the call returns, so it is
// used again by the next one.
type scratch struct {
	base unsafe.Pointer
	size int
	used int
}

// reset makes room for that many bytes.
func (s *scratch) reset(size int) {
	s.used = 0
	if size > s.size {
		C.free(s.base)
		s.size = max(2*size, 4096)
		s.base = C.malloc(C.size_t(s.size)) // never nil in Go
	}
}

func (s *scratch) free() {
	C.free(s.base)
	*s = scratch{}
}

func (s *scratch) text(text string) C.pickdgo_slice {
	if len(text) == 0 {
		return C.pickdgo_slice{}
	}
	at := unsafe.Add(s.base, s.used)
	copy(unsafe.Slice((*byte)(at), len(text)), text)
	s.used += len(text)
	return C.pickdgo_slice{data: C.uintptr_t(uintptr(at)), size: C.size_t(len(text))}
}

// array reserves room for elements of the library's, which are all of 8-byte alignment.
func array[T any](s *scratch, count int) ([]T, C.uintptr_t) {
	s.used = (s.used + 7) &^ 7
	at := unsafe.Add(s.base, s.used)
	var element T
	s.used += count * int(unsafe.Sizeof(element))
	return unsafe.Slice((*T)(at), count), C.uintptr_t(uintptr(at))
}

func (s *scratch) strings(texts []string) (C.uintptr_t, C.size_t) {
	if len(texts) == 0 {
		return 0, 0
	}
	slices, at := array[C.pickdgo_slice](s, len(texts))
	for index, text := range texts {
		slices[index] = s.text(text)
	}
	return at, C.size_t(len(texts))
}

// pinned points to the texts where they are.
func (s *scratch) pinned(texts []string, pinner *runtime.Pinner) (C.uintptr_t, C.size_t) {
	slices, at := array[C.pickdgo_slice](s, len(texts))
	for index, text := range texts {
		data := unsafe.StringData(text)
		if len(text) > 0 {
			pinner.Pin(data)
		}
		slices[index] = C.pickdgo_slice{
			data: C.uintptr_t(uintptr(unsafe.Pointer(data))), size: C.size_t(len(text)),
		}
	}
	return at, C.size_t(len(texts))
}

func (s *scratch) extras(extras []Extra) (C.uintptr_t, C.size_t) {
	if len(extras) == 0 {
		return 0, 0
	}
	elements, at := array[C.pickdgo_extra](s, len(extras))
	for index, extra := range extras {
		digest := unsafe.String(unsafe.SliceData(extra.Digest), len(extra.Digest))
		elements[index] = C.pickdgo_extra{offset: C.size_t(extra.Offset), digest: s.text(digest)}
	}
	return at, C.size_t(len(extras))
}

func (s *scratch) attributes(attributes []Attribute) (C.uintptr_t, C.size_t) {
	if len(attributes) == 0 {
		return 0, 0
	}
	elements, at := array[C.pickdgo_attribute](s, len(attributes))
	for index, attribute := range attributes {
		elements[index] = C.pickdgo_attribute{key: s.text(attribute.Key), value: s.text(attribute.Value)}
	}
	return at, C.size_t(len(attributes))
}
