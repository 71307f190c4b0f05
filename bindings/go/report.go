package pickd

// #include "bridge.h"
// #cgo noescape pickdgo_report
// #cgo nocallback pickdgo_report
import "C"

import (
	"context"
	"math"
	"syscall"
	"time"
	"unsafe"
)

// A ReportKind says what became of a request.
type ReportKind uint8

// The kinds, as in pickd.h. Done, Failed and Cancelled end the request and are applied once.
const (
	FirstToken ReportKind = iota + 1 // the first token came: its prefill is over
	Progress                         // the stream lives; OutputTokens so far
	Done                             // the request ended well; usage as far as known
	Failed                           // the endpoint failed, which makes it suspect; the request ended
	Fallback                         // it failed too, and Endpoint serves now: the reservation moves
	Cancelled                        // the caller went away: says nothing of the endpoint; it ended
)

// A Count is a number of tokens that may be unknown, which is its zero value. Make one with [Tokens].
type Count struct {
	known bool
	n     uint32
}

// Tokens is a known count; a negative n is unknown.
func Tokens(n int) Count {
	if n < 0 {
		return Count{}
	}
	return Count{true, unsigned(n)}
}

// Get returns the count, and whether it is known.
func (c Count) Get() (int, bool) { return int(c.n), c.known }

func (c Count) raw() C.uint32_t {
	if !c.known {
		return C.PICKD_UNKNOWN
	}
	return C.uint32_t(c.n)
}

// A Report tells the daemon what became of the request of a ticket.
type Report struct {
	Ticket       Ticket
	Kind         ReportKind
	PromptTokens Count  // from the engine's usage
	CachedTokens Count  // usage.prompt_tokens_details.cached_tokens
	OutputTokens Count  // from the engine's usage; of Progress, so far
	Endpoint     string // of Fallback: name or address out of the pick
}

// Report hands a report over and returns: it waits only while the ring is full. What the daemon makes of
// it is counted there. Reports on one ticket arrive in the order of the calls.
//
// Reports on degraded picks succeed while the daemon is away; on others they fail with
// [ErrNotConnected], and may be repeated when it is back.
func (c *Client) Report(ctx context.Context, report Report) error {
	q := c.queueOf(report.Ticket)
	code := q.report(&report)
	if code == -C.int(syscall.EAGAIN) {
		var err error
		code, err = q.whenThereIsRoom(ctx, func() C.int { return q.report(&report) })
		if err != nil {
			return err
		}
	}
	return failure("report", code)
}

// ReportAndWait waits for what the daemon says: [ErrStale] (unknown ticket, or its request ended already),
// [ErrNotFound] (no such fallback endpoint), [ErrPermission] (another user's ticket), [ErrTimeout] (it may
// yet be applied). It holds an operating system thread meanwhile: for tests and for who must know.
func (c *Client) ReportAndWait(ctx context.Context, report Report) error {
	return c.blocking(ctx, "report", func(timeout C.int64_t) C.int {
		return C.pickdgo_report_wait(c.handle, C.uint64_t(report.Ticket.Client),
			C.uint64_t(report.Ticket.Sequence), C.uint32_t(report.Kind), report.PromptTokens.raw(),
			report.CachedTokens.raw(), report.OutputTokens.raw(),
			unsafe.Pointer(unsafe.StringData(report.Endpoint)), C.size_t(len(report.Endpoint)), timeout)
	})
}

// report is one short call; -EAGAIN when the ring is full.
func (q *queue) report(report *Report) C.int {
	q.lock()
	defer q.mutex.Unlock()
	if q.closed {
		return codeClosed
	}
	return C.pickdgo_report(q.address, C.uint64_t(report.Ticket.Client),
		C.uint64_t(report.Ticket.Sequence), C.uint32_t(report.Kind), report.PromptTokens.raw(),
		report.CachedTokens.raw(), report.OutputTokens.raw(),
		unsafe.Pointer(unsafe.StringData(report.Endpoint)), C.size_t(len(report.Endpoint)))
}

// microsecondsUntil a context's deadline, for the library: at least one, `otherwise` where there is none.
func microsecondsUntil(ctx context.Context, otherwise int64) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return otherwise
	}
	left := time.Until(deadline).Microseconds()
	return min(max(left, 1), math.MaxInt64/16)
}
