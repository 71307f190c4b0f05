// Bodies and answers by libpickd-body. The only file of the server that calls it.

package body

// #cgo pkg-config: pickd-body
// #include "bridge.h"
// #cgo noescape bodygo_begin
// #cgo nocallback bodygo_begin
// #cgo noescape bodygo_add
// #cgo nocallback bodygo_add
// #cgo nocallback bodygo_end
// #cgo nocallback bodygo_request
// #cgo noescape bodygo_begin_answer
// #cgo nocallback bodygo_begin_answer
// #cgo noescape bodygo_add_answer
// #cgo nocallback bodygo_add_answer
// #cgo nocallback bodygo_end_answer
// #cgo nocallback bodygo_report
import "C"

import (
	"fmt"
	"io"
	"syscall"
	"unsafe"

	pickd "github.com/pickd/pickd/bindings/go"
)

// A Library reads with libpickd-body. Its readers are used again and again; they count together.
type Library struct {
	bodyMax  int
	counters *C.pickd_body_counters
	idle     chan *reader
}

const idleMax = 256 // readers that are kept, with the memory of the bodies that they read

// The headers that the library looks at.
var wantedHeaders = map[string]bool{
	"x-session-id": true, "x-claude-code-session-id": true, "x-session-affinity": true, "x-request-id": true,
	"x-llm-d-inference-fairness-id": true, "x-gateway-inference-fairness-id": true, "content-encoding": true, "content-type": true,
}

// NewLibrary makes readers of bodies of at most that many bytes. It lives as long as the process.
func NewLibrary(bodyMax int) (*Library, error) {
	counters := C.pickd_body_counters_new()
	if counters == nil {
		return nil, syscall.ENOMEM
	}
	return &Library{bodyMax: bodyMax, counters: counters, idle: make(chan *reader, idleMax)}, nil
}

// Reader takes a reader out of those that are idle, or makes one.
func (l *Library) Reader() (Reader, error) {
	select {
	case r := <-l.idle:
		return r, nil
	default:
	}
	r := &reader{library: l}
	if code := C.bodygo_new(C.size_t(l.bodyMax), l.counters, &r.raw); code != 0 {
		return nil, failure(code)
	}
	return r, nil
}

// WriteMetrics writes the library's counters for Prometheus.
func (l *Library) WriteMetrics(w io.Writer) {
	for at := C.size_t(0); ; at++ {
		var help *C.char
		name := C.pickd_body_counter_name(at, &help)
		if name == nil {
			return
		}
		series := "pickd_extproc_" + C.GoString(name)
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n%s %d\n", series, C.GoString(help), series, series,
			uint64(C.pickd_body_counter_value(l.counters, at)))
	}
}

type reader struct {
	library *Library
	raw     *C.bodygo_reader
	packed  []byte
}

func (r *reader) Begin(path string, headers []pickd.Attribute) error {
	r.pack(headers)
	return failure(C.bodygo_begin(r.raw, (*C.char)(unsafe.Pointer(unsafe.StringData(path))), C.size_t(len(path)),
		(*C.uchar)(unsafe.SliceData(r.packed)), C.size_t(len(r.packed))))
}

// pack makes the flat form of headers.
func (r *reader) pack(headers []pickd.Attribute) {
	const longest = 1<<16 - 1
	r.packed = r.packed[:0]
	for at := range headers {
		key, value := headers[at].Key, headers[at].Value
		if wantedHeaders[key] && len(value) <= longest {
			r.packed = append(r.packed, byte(len(key)), byte(len(key)>>8), byte(len(value)), byte(len(value)>>8))
			r.packed = append(append(r.packed, key...), value...)
		}
	}
}

func (r *reader) Add(piece []byte) error {
	code := C.bodygo_add(r.raw, unsafe.Pointer(unsafe.SliceData(piece)), C.size_t(len(piece)))
	if code == -C.int(syscall.E2BIG) {
		return ErrTooLarge
	}
	return failure(code)
}

func (r *reader) End() error { return failure(C.bodygo_end(r.raw)) }

func (r *reader) Request(to *pickd.Request) error {
	if code := C.bodygo_request(r.raw); code != 0 {
		return failure(code)
	}
	from := &r.raw.request
	to.Model, to.Adapter, to.Salt = text(from.model), text(from.adapter), text(from.salt)
	to.SessionID, to.FairnessID, to.RequestID = text(from.session_id), text(from.fairness_id), text(from.request_id)
	to.Stream = from.flags&C.PICKD_REQUEST_STREAM != 0
	to.Media = from.flags&C.PICKD_REQUEST_MEDIA != 0
	to.PromptTokens, to.ExpectedOutputTokens = int(from.prompt_tokens), int(from.expected_output_tokens)
	to.Text = make([]string, int(from.text_count))
	for at, segment := range unsafe.Slice(from.text, int(from.text_count)) {
		to.Text[at] = text(segment)
	}
	to.TokenIDs = unsafe.Slice((*uint32)(unsafe.Pointer(from.token_ids)), int(from.token_count))
	to.Extras = make([]pickd.Extra, int(from.extra_count))
	stride := int(from.extra_stride)
	if stride == 0 {
		stride = C.sizeof_pickd_extra
	}
	for at := range to.Extras {
		extra := (*C.pickd_extra)(unsafe.Add(unsafe.Pointer(from.extras), at*stride))
		digest := unsafe.Slice((*byte)(extra.digest.data), int(extra.digest.size))
		to.Extras[at] = pickd.Extra{Offset: int(extra.offset), Digest: digest}
	}
	return nil
}

func (r *reader) BeginAnswer(status int, headers []pickd.Attribute) error {
	r.pack(headers)
	return failure(C.bodygo_begin_answer(r.raw, C.int(status), (*C.uchar)(unsafe.SliceData(r.packed)),
		C.size_t(len(r.packed))))
}

func (r *reader) AddAnswer(piece []byte) Event {
	code := C.bodygo_add_answer(r.raw, unsafe.Pointer(unsafe.SliceData(piece)), C.size_t(len(piece)))
	if code < 0 {
		return 0
	}
	var happened Event
	for _, one := range [...]struct {
		bit   C.int
		event Event
	}{{C.PICKD_ANSWER_FIRST_TOKEN, FirstToken}, {C.PICKD_ANSWER_TOKENS, MoreTokens}, {C.PICKD_ANSWER_ENDED, Ended}} {
		if code&one.bit != 0 {
			happened |= one.event
		}
	}
	return happened
}

// EndAnswer leaves it to Report to say how it ended.
func (r *reader) EndAnswer() { C.bodygo_end_answer(r.raw) }

func (r *reader) Report(report *pickd.Report) error {
	if code := C.bodygo_report(r.raw); code != 0 {
		return failure(code)
	}
	from := &r.raw.report
	report.Kind = pickd.ReportKind(from.kind)
	report.PromptTokens = count(from.prompt_tokens)
	report.CachedTokens = count(from.cached_tokens)
	report.OutputTokens = count(from.output_tokens)
	return nil
}

func count(tokens C.uint32_t) pickd.Count {
	if tokens == C.PICKD_UNKNOWN {
		return pickd.Count{}
	}
	return pickd.Tokens(int(tokens))
}

func (r *reader) Release() {
	select {
	case r.library.idle <- r:
	default:
		C.bodygo_free(r.raw)
	}
}

// text is the library's memory as a string: good until the reader's next Begin or Release.
func text(slice C.pickd_slice) string {
	return unsafe.String((*byte)(slice.data), int(slice.size))
}

func failure(code C.int) error {
	if code >= 0 {
		return nil
	}
	return &libraryError{syscall.Errno(-code), C.GoString(C.pickd_body_strerror(code))}
}

// A libraryError says what the library found wrong with a body.
type libraryError struct {
	code syscall.Errno
	text string
}

func (e *libraryError) Error() string { return "body: " + e.text }
func (e *libraryError) Unwrap() error { return e.code }
