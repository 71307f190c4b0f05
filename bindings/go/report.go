// Reports on picks. What the daemon makes of them is not known here.

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

// Tokens is a known count; an n that is negative or over 2^32-2 is unknown.
func Tokens(n int) Count {
	if !isCount(n) {
		return Count{}
	}
	return Count{true, uint32(n)}
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

// Report hands a report over and returns; what the daemon makes of it is counted there. One that finds the
// ring full, or many picks outstanding, goes into it a moment later, and errors of that are not told. Reports on one ticket arrive in the order of the calls.
//
// While the daemon is away reports on degraded picks succeed, and so does the end of a request of this client, whose
// reservation the daemon releases when it is back, without its usage; others fail with [ErrNotConnected], and may be
// repeated then.
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

// reportsMax is how many reports may wait for room in a queue's ring before their callers wait too.
const reportsMax = 4096

// report is one short call; -EAGAIN when neither the ring nor the list of those who wait has room.
func (q *queue) report(report *Report) C.int {
	if q.leaveToPoller() && report.Kind >= FirstToken && report.Kind <= Cancelled && q.inbox.putReport(report) {
		q.visit()
		return 0
	}
	q.lock()
	defer q.unlock()
	if q.closed {
		return codeClosed
	}
	if q.inbox.count.Load() != 0 {
		q.empty(&q.inbox) // an earlier one may be among them
	}
	if len(q.reports) == 0 {
		if code := q.handOver(report); code != -C.int(syscall.EAGAIN) {
			return code
		}
	}
	if len(q.reports) >= reportsMax {
		return -C.int(syscall.EAGAIN)
	}
	q.reports = append(q.reports, *report)
	return 0
}

// handOver puts a report into the ring; under mutex.
func (q *queue) handOver(report *Report) C.int {
	return C.pickdgo_report(q.address, C.uint64_t(report.Ticket.Client),
		C.uint64_t(report.Ticket.Sequence), C.uint32_t(report.Kind), report.PromptTokens.raw(),
		report.CachedTokens.raw(), report.OutputTokens.raw(),
		unsafe.Pointer(unsafe.StringData(report.Endpoint)), C.size_t(len(report.Endpoint)))
}

// whenThereIsRoom tries again and again while the ring is full. One caller at a time: the others wait in order.
func (q *queue) whenThereIsRoom(ctx context.Context, try func() C.int) (C.int, error) {
	const shortest, longest = 50 * time.Microsecond, 2 * time.Millisecond
	select {
	case q.gate <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-q.client.closing:
		return 0, ErrClosed
	}
	defer func() { <-q.gate }()
	timer := time.NewTimer(shortest)
	defer timer.Stop()
	// Without answers to come nothing tells of room: a ring may be full of reports.
	for pause := shortest; ; pause = min(2*pause, longest) {
		if code := try(); code != -C.int(syscall.EAGAIN) {
			return code, nil
		}
		timer.Reset(pause)
		select {
		case <-q.progress:
		case <-timer.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-q.client.closing:
			return 0, ErrClosed
		}
	}
}

// microsecondsLeft until a deadline, for the library: at least one; 0 where there is none.
func microsecondsLeft(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return min(max(time.Until(until).Microseconds(), 1), math.MaxInt64/16)
}
