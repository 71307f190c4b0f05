// Standing in line: what waits to be submitted while the queue is busy or full.

package pickd

// #include "bridge.h"
// #cgo noescape pickdgo_submit
// #cgo nocallback pickdgo_submit
// #cgo nocallback pickdgo_cancel
// #cgo nocallback pickdgo_report_many
import "C"

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// An inbox takes those who found the queue's mutex taken, or leave it to the poller.
type inbox struct {
	count   atomic.Int32 // how many there are; changed under mutex, read without
	mutex   sync.Mutex
	waiters []*waiter
	reports []Report
}

func (i *inbox) put(w *waiter) {
	i.mutex.Lock()
	i.waiters = append(i.waiters, w)
	i.count.Add(1)
	i.mutex.Unlock()
}

// putReport is false when there are too many already.
func (i *inbox) putReport(report *Report) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if len(i.reports) >= reportsMax {
		return false
	}
	i.reports = append(i.reports, *report)
	i.count.Add(1)
	return true
}

// empty moves all into the queue's own lists; under the queue's mutex.
func (q *queue) empty(i *inbox) {
	i.mutex.Lock()
	q.line = append(q.line, i.waiters...)
	q.reports = append(q.reports, i.reports...)
	clear(i.waiters)
	clear(i.reports)
	i.waiters, i.reports = i.waiters[:0], i.reports[:0]
	i.count.Store(0)
	i.mutex.Unlock()
}

// ---- The mutex -----------------------------------------------------------------------------------

// lock makes who looks for an answer under the mutex stop that.
func (q *queue) lock() {
	if q.mutex.TryLock() {
		return
	}
	atomic.StoreInt32(q.wanted(), 1)
	q.mutex.Lock()
}

// unlock submits whom there is room for before it gives the mutex back, and looks again after that: who
// found the mutex taken counts on it.
func (q *queue) unlock() {
	for {
		q.admit()
		q.mutex.Unlock()
		if q.inbox.count.Load() == 0 || !q.mutex.TryLock() {
			return
		}
	}
}

func (q *queue) wanted() *int32 { return (*int32)(unsafe.Pointer(&q.memory.wanted)) }

// admit submits those in line as far as there is room; under mutex.
func (q *queue) admit() {
	if !q.closed && atomic.LoadInt32(q.wanted()) != 0 {
		atomic.StoreInt32(q.wanted(), 0)
	}
	if q.inbox.count.Load() != 0 {
		q.empty(&q.inbox)
	}
	if len(q.reports) > 0 && !q.admitReports() {
		q.tryLater()
		return
	}
	admitted := 0
	for _, w := range q.line {
		code := q.try(&w.request, microsecondsLeft(w.until), w, 0)
		if code == -C.int(syscall.EAGAIN) {
			q.tryLater()
			break
		}
		admitted++
		w.queued, w.request = false, Request{}
		if code < 0 {
			w.err = q.refusal(code)
		}
		if code != 0 {
			w.done <- struct{}{}
		}
	}
	if admitted > 0 {
		q.line = slices.Delete(q.line, 0, admitted)
	}
}

// admitReports hands over those that found the ring full, or came from the inbox, a batch a call; under mutex. True
// when none is left.
func (q *queue) admitReports() bool {
	handed := 0
	for handed < len(q.reports) && !q.closed {
		batch := q.reports[handed:min(handed+C.PICKDGO_BATCH, len(q.reports))]
		for at := range batch {
			fill(&q.memory.reports[at], &batch[at])
		}
		taken := int(C.pickdgo_report_many(q.address, C.int(len(batch))))
		handed += taken
		if taken < len(batch) {
			break
		}
	}
	if q.closed {
		handed = len(q.reports)
	}
	q.reports = slices.Delete(q.reports, 0, handed)
	return len(q.reports) == 0
}

func fill(to *C.pickdgo_report_entry, report *Report) {
	to.client, to.sequence = C.uint64_t(report.Ticket.Client), C.uint64_t(report.Ticket.Sequence)
	to.kind = C.uint32_t(report.Kind)
	to.prompt_tokens, to.cached_tokens = report.PromptTokens.raw(), report.CachedTokens.raw()
	to.output_tokens = report.OutputTokens.raw()
	// One that is cut here is too long for any endpoint, and stays so.
	size := min(len(report.Endpoint), C.PICKDGO_NAME_BYTES)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&to.endpoint[0])), size), report.Endpoint)
	to.endpoint_size = C.uint32_t(size)
}

// tryLater sees to it that somebody looks for room where no answers are to come that tell of it: the ring may
// be full of reports.
func (q *queue) tryLater() {
	const pause = 100 * time.Microsecond
	if q.waiting.Load() > 0 || q.retries {
		return
	}
	q.retries = true
	time.AfterFunc(pause, func() {
		q.lock()
		q.retries = false
		q.unlock()
	})
}

// ---- Picks ---------------------------------------------------------------------------------------

func (q *queue) pick(ctx context.Context, request *Request) (Pick, error) {
	w := waiters.Get().(*waiter)
	if !q.enter(ctx, request, w) {
		if q.busy {
			q.pollFor(w)
		}
		if err := q.await(ctx, w); err != nil {
			waiters.Put(w)
			return Pick{}, err
		}
	}
	pick, err := w.pick, w.err
	w.pick, w.err = Pick{}, nil
	waiters.Put(w)
	return pick, err
}

// enter submits a pick or puts it in line. True when it is over already.
func (q *queue) enter(ctx context.Context, request *Request, w *waiter) bool {
	until, _ := ctx.Deadline()
	if !q.leaveToPoller() && q.mutex.TryLock() {
		if len(q.line) == 0 && q.inbox.count.Load() == 0 {
			look := time.Duration(0)
			if q.waiting.Load() == 0 {
				look = q.spin.budget()
			}
			code := q.try(request, microsecondsLeft(until), w, look)
			if code != -C.int(syscall.EAGAIN) {
				q.unlock()
				if code < 0 {
					w.err = q.refusal(code)
				}
				return code != 0
			}
		}
		w.queued, w.request, w.until = true, *request, until
		q.line = append(q.line, w)
		q.unlock()
		return false
	}
	w.queued, w.request, w.until = true, *request, until
	q.inbox.put(w)
	q.visit()
	return false
}

// leaveToPoller tells whether so many picks are outstanding that the poller will come soon. It then submits for
// all: the queue's memory stays with one processor, where each taking its turn would move it every time.
func (q *queue) leaveToPoller() bool { return !q.busy && q.waiting.Load() >= crowd }

const crowd = 16

// visit sees to it that somebody looks into the inbox, after something was put there. Of a crowd that is the
// poller: it counts down `waiting` before it looks, so it finds what was put there before that, and comes
// again while any are waiting. A timer stands in for a daemon that does not answer.
func (q *queue) visit() {
	const patience = time.Millisecond
	if !q.leaveToPoller() {
		if q.mutex.TryLock() {
			q.unlock()
		}
		return
	}
	if q.visits.CompareAndSwap(false, true) {
		time.AfterFunc(patience, func() {
			q.visits.Store(false)
			q.lock()
			q.unlock()
		})
	}
}

// try submits a pick; under mutex. It returns 0, 1 when the answer is there too, or why not: -EAGAIN is for
// want of room.
func (q *queue) try(request *Request, timeoutMicro int64, w *waiter, look time.Duration) C.int {
	if q.closed {
		return codeClosed
	}
	if len(q.free) == 0 {
		return -C.int(syscall.EAGAIN)
	}
	w.slot = q.free[len(q.free)-1]
	code := q.submit(request, timeoutMicro, w.slot, look)
	if look != 0 && code >= 0 {
		q.spin.learn(code == 1)
	}
	if code == 1 {
		w.take(&q.memory.own)
	} else if code == 0 {
		w.ticket = q.memory.ticket
		q.free = q.free[:len(q.free)-1]
		q.slots[w.slot] = w
		q.waiting.Add(1)
	}
	return code
}

// release frees a slot; under mutex.
func (q *queue) release(slot uint32) {
	q.slots[slot] = nil
	q.free = append(q.free, slot)
	q.waiting.Add(-1)
}

func (q *queue) refusal(code C.int) error {
	if code == codeClosed {
		return ErrClosed
	}
	err := &Error{Op: "pick", Code: Code(-code)}
	if err.Code == ErrInvalid || err.Code == ErrTooBig {
		err.Detail = q.client.lastError()
	}
	return err
}

// await waits for the answer, or takes the pick back when the context ends. An answer that came first
// holds a reservation, so it is given to the caller all the same.
func (q *queue) await(ctx context.Context, w *waiter) error {
	if ctx.Done() == nil {
		<-w.done
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	q.lock()
	taken := true
	if w.queued {
		q.empty(&q.inbox)
		at := slices.Index(q.line, w)
		q.line = slices.Delete(q.line, at, at+1)
		w.queued, w.request = false, Request{}
	} else if q.slots[w.slot] == w {
		C.pickdgo_cancel(q.address, w.ticket.client, w.ticket.sequence)
		q.release(w.slot)
	} else {
		taken = false
	}
	q.unlock()
	if taken {
		return ctx.Err()
	}
	<-w.done
	return nil
}
