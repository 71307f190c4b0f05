// Taking answers from a queue and handing them to their waiters. Knows no request and no daemon.

package pickd

// #include "bridge.h"
// #cgo nocallback pickdgo_poll
import "C"

import (
	"runtime"
	"time"
)

// ---- Answers -------------------------------------------------------------------------------------

// take hands answers to their waiters; under polling. It returns how many there were; when these are fewer
// than a batch, the descriptor will signal the next.
func (q *queue) take(spins uint32) int {
	q.lock()
	if q.closed {
		q.unlock()
		return 0
	}
	taken := max(int(C.pickdgo_poll(q.address, C.uint32_t(spins))), 0)
	for at := range taken {
		slot := uint32(q.memory.answers[at].user_data)
		q.batch[at] = q.slots[slot]
		q.release(slot)
	}
	q.unlock()
	// The answers are this goroutine's until it gives polling back.
	for at := range taken {
		w := q.batch[at]
		q.batch[at] = nil
		w.take(&q.memory.answers[at])
		w.done <- struct{}{}
	}
	if taken > 0 {
		select {
		case q.progress <- struct{}{}:
		default:
		}
	}
	return taken
}

// outstanding tells how many picks wait for their answers.
func (q *queue) outstanding() int {
	q.lock()
	defer q.unlock()
	return int(q.waiting.Load()) + len(q.line)
}

// pollEvents takes answers when the descriptor tells of some.
func (q *queue) pollEvents() {
	defer close(q.ended)
	raw, err := q.file.SyscallConn()
	if err != nil {
		return
	}
	// Returning false makes Read wait in the network poller until the descriptor becomes readable.
	_ = raw.Read(func(uintptr) bool {
		q.polling.Lock()
		defer q.polling.Unlock()
		for {
			if q.take(0) < C.PICKDGO_BATCH {
				return false
			}
		}
	})
}

// pollFor looks for answers until that of w has come, if nobody else does.
func (q *queue) pollFor(w *waiter) {
	const spins, looks = 16, 64 // about 100 us
	if !q.polling.TryLock() {
		return
	}
	for look := 0; look < looks && len(w.done) == 0; look++ {
		q.take(spins)
	}
	q.polling.Unlock()
	// Counted after giving polling back: who submitted before that, and found it taken, counts on this.
	if q.outstanding() > 0 {
		select {
		case q.stirred <- struct{}{}:
		default:
		}
	}
}

// pollBusily looks for answers as long as picks are outstanding. A daemon that stands still does not cost
// a core for ever.
func (q *queue) pollBusily() {
	const spins, patience, pause = 16, 10 * time.Millisecond, 100 * time.Microsecond
	defer close(q.ended)
	for {
		select {
		case <-q.stirred:
		case <-q.client.closing:
			return
		}
		last := time.Now()
		for {
			q.polling.Lock()
			taken := q.take(spins)
			q.polling.Unlock()
			if q.outstanding() == 0 { // as in pollFor
				break
			}
			if taken > 0 {
				last = time.Now()
			} else if time.Since(last) > patience {
				time.Sleep(pause)
			}
			runtime.Gosched()
		}
	}
}
