package pickd

// #include "bridge.h"
// #cgo noescape pickdgo_submit
// #cgo nocallback pickdgo_submit
// #cgo nocallback pickdgo_poll
// #cgo nocallback pickdgo_cancel
import "C"

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A queue is one of libpickd's asynchronous queues with those who wait for its answers.
//
// Its C functions are called under mutex, one at a time; none of them waits. Whoever holds polling takes
// answers and hands them to their waiters: the goroutine run by openQueue, which waits for the queue's
// descriptor in the network poller; of a busy polling client, mostly the waiters themselves.
type queue struct {
	client  *Client
	address C.uintptr_t
	memory  *C.pickdgo_queue
	busy    bool

	gate     chan struct{} // held by the one who tries again while there is no room
	progress chan struct{} // answers were taken, so there may be room
	stirred  chan struct{} // of a busy polling client: outstanding picks have nobody who polls
	ended    chan struct{} // the goroutine is gone

	polling sync.Mutex // before mutex
	batch   [C.PICKDGO_BATCH]*waiter

	mutex   sync.Mutex
	slots   []*waiter // by the number that the library hands back; nil: not outstanding
	free    []uint32  // slots that are not
	spin    spin
	waiting int // how many are not nil
	closed  bool
	scratch scratch

	file *os.File // the queue's descriptor, in the network poller
}

// A waiter is a goroutine inside Pick. done is received from exactly once for each submission that was
// answered, which makes a waiter fit for use again.
type waiter struct {
	done   chan struct{}
	pick   Pick
	err    error
	slot   uint32
	ticket C.pickd_ticket
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

func (w *waiter) take(answer *C.pickdgo_answer) {
	if answer.status == 0 {
		w.pick = pickOf(answer)
	} else {
		w.err = &Error{Op: "pick", Code: Code(-answer.status)}
	}
}

func openQueue(c *Client, depth int, options Options) (*queue, error) {
	q := &queue{
		client:   c,
		busy:     options.BusyPoll,
		gate:     make(chan struct{}, 1),
		progress: make(chan struct{}, 1),
		stirred:  make(chan struct{}, 1),
		ended:    make(chan struct{}),
	}
	if code := C.pickdgo_open(c.handle, C.uint32_t(unsigned(depth)), &q.memory); code != 0 {
		return nil, &Error{Op: "open", Code: Code(-code), Detail: c.lastError()}
	}
	if !q.busy {
		q.spin = newSpin(options.Spin)
	}
	q.address = C.uintptr_t(uintptr(unsafe.Pointer(q.memory)))
	q.slots = make([]*waiter, depth)
	q.free = make([]uint32, depth)
	for slot := range q.free {
		q.free[slot] = uint32(slot)
	}
	if q.busy {
		go q.pollBusily()
		return q, nil
	}
	if err := q.register(); err != nil {
		C.pickdgo_close(q.memory)
		return nil, err
	}
	go q.pollEvents()
	return q, nil
}

// register hands the network poller a descriptor of its own: closing it is Go's business then, and the
// library's stays open.
func (q *queue) register() error {
	event := C.pickd_queue_event_fd(q.memory.queue)
	if event < 0 {
		return failure("open", event)
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(event), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return os.NewSyscallError("fcntl", errno)
	}
	// What is not non-blocking is read by a thread of its own. It is an epoll descriptor, which nobody reads.
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		syscall.Close(int(fd))
		return os.NewSyscallError("fcntl", err)
	}
	q.file = os.NewFile(fd, "pickd queue")
	return nil
}

// end answers all waiters and lets nobody call into C any more but close.
func (q *queue) end() {
	q.mutex.Lock()
	q.closed = true
	for slot, w := range q.slots {
		if w == nil {
			continue
		}
		q.slots[slot] = nil
		w.err = ErrClosed
		w.done <- struct{}{}
	}
	q.waiting = 0
	q.mutex.Unlock()
}

// close comes after end. It waits for the daemon to take the channel back, a while at most.
func (q *queue) close() {
	if q.file != nil {
		q.file.Close()
	}
	<-q.ended
	q.polling.Lock() // a waiter may still look for its answer
	defer q.polling.Unlock()
	C.pickdgo_close(q.memory)
	q.scratch.free()
}

// ---- Picks ---------------------------------------------------------------------------------------

func (q *queue) pick(ctx context.Context, request *Request) (Pick, error) {
	w := waiters.Get().(*waiter)
	code := q.submit(ctx, request, w)
	if code == -C.int(syscall.EAGAIN) {
		var err error
		code, err = q.whenThereIsRoom(ctx, func() C.int { return q.submit(ctx, request, w) })
		if err != nil {
			waiters.Put(w)
			return Pick{}, err
		}
	}
	if code < 0 {
		waiters.Put(w)
		return Pick{}, q.refusal(code)
	}
	if code == 1 {
		pick, err := w.pick, w.err
		w.pick, w.err = Pick{}, nil
		waiters.Put(w)
		return pick, err
	}
	if q.busy {
		q.pollFor(w)
	}
	if err := q.await(ctx, w); err != nil {
		waiters.Put(w)
		return Pick{}, err
	}
	pick, err := w.pick, w.err
	w.pick, w.err = Pick{}, nil
	waiters.Put(w)
	return pick, err
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
	outstanding := q.slots[w.slot] == w
	if outstanding {
		C.pickdgo_cancel(q.address, w.ticket.client, w.ticket.sequence)
		q.release(w.slot)
	}
	q.mutex.Unlock()
	if outstanding {
		return ctx.Err()
	}
	<-w.done
	return nil
}

// release frees a slot; under mutex.
func (q *queue) release(slot uint32) {
	q.slots[slot] = nil
	q.free = append(q.free, slot)
	q.waiting--
}

// lock makes who looks for an answer under the mutex stop that.
func (q *queue) lock() {
	if q.mutex.TryLock() {
		return
	}
	wanted := (*int32)(unsafe.Pointer(&q.memory.wanted))
	atomic.StoreInt32(wanted, 1)
	q.mutex.Lock()
	atomic.StoreInt32(wanted, 0)
}

// submit returns 1 when w has been answered already, and 0 when it will be.
func (q *queue) submit(ctx context.Context, request *Request, w *waiter) C.int {
	q.lock()
	defer q.mutex.Unlock()
	if q.closed {
		return codeClosed
	}
	if len(q.free) == 0 {
		return -C.int(syscall.EAGAIN)
	}
	w.slot = q.free[len(q.free)-1]
	look := time.Duration(0)
	if q.waiting == 0 {
		look = q.spin.budget()
	}
	code := q.submitLocked(request, microsecondsUntil(ctx, 0), w.slot, look)
	if look != 0 && code >= 0 {
		q.spin.learn(code == 1)
	}
	if code == 1 {
		w.take(&q.memory.own)
	} else if code == 0 {
		w.ticket = q.memory.ticket
		q.free = q.free[:len(q.free)-1]
		q.slots[w.slot] = w
		q.waiting++
	}
	return code
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

// ---- Answers -------------------------------------------------------------------------------------

// take hands answers to their waiters; under polling. It returns how many there were; when these are fewer
// than a batch, the descriptor will signal the next.
func (q *queue) take(spins uint32) int {
	q.lock()
	if q.closed {
		q.mutex.Unlock()
		return 0
	}
	taken := max(int(C.pickdgo_poll(q.address, C.uint32_t(spins))), 0)
	for at := range taken {
		slot := uint32(q.memory.answers[at].user_data)
		q.batch[at] = q.slots[slot]
		q.release(slot)
	}
	q.mutex.Unlock()
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
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.waiting
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
