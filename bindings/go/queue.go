// queue: one asynchronous queue of libpickd and who may touch it when. The other files of the
// queue keep to its rules.

package pickd

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
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
// Its C functions are called under mutex, one at a time; none of them waits. Who finds the mutex taken, or no
// room, stands in line and is submitted by whoever holds the mutex next. Whoever holds polling takes answers
// and hands them to their waiters: the goroutine run by openQueue, which waits for the queue's descriptor in
// the network poller; of a busy polling client, mostly the waiters themselves.
type queue struct {
	client  *Client
	address C.uintptr_t
	memory  *C.pickdgo_queue
	busy    bool

	gate     chan struct{} // held by the one whose report has no room
	progress chan struct{} // answers were taken, so there may be room
	stirred  chan struct{} // of a busy polling client: outstanding picks have nobody who polls
	ended    chan struct{} // the goroutine is gone

	polling sync.Mutex // before mutex
	batch   [C.PICKDGO_BATCH]*waiter

	inbox inbox

	mutex   sync.Mutex  // before that of inbox
	line    []*waiter   // who came from the inbox and has no room yet
	reports []Report    // that found the ring full
	retries bool        // a timer will look for room
	visits  atomic.Bool // a timer will look into the inbox
	slots   []*waiter   // by the number that the library hands back; nil: not outstanding
	free    []uint32    // slots that are not
	spin    spin
	waiting atomic.Int32 // how many are not nil; changed under mutex, read without
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

	// Of who stands in line; under mutex.
	queued  bool
	request Request
	until   time.Time // zero: no deadline
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
	// Latecomers still look at it after close: it goes with the last of them.
	runtime.AddCleanup(q, func(memory *C.pickdgo_queue) { C.free(unsafe.Pointer(memory)) }, q.memory)
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
		if w != nil {
			q.slots[slot] = nil
			w.err = ErrClosed
			w.done <- struct{}{}
		}
	}
	q.waiting.Store(0)
	q.unlock() // ends those in line
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
