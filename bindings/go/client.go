// Client: opening, closing, and which queue a pick goes to. How a queue works stands in queue.go.

package pickd

// #cgo pkg-config: pickd
// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Version of this package, which is that of the pickd release it belongs to.
const Version = "0.1.0"

// Options of [Open]. The zero value is right for most.
type Options struct {
	Socket string // path of the daemon's socket; empty: $PICKD_SOCKET, else /run/pickd/pickd.sock
	Name   string // shown to operators; empty: the name of the program

	// KeysMax is the longest prompt in prefix blocks, 16 to 16384; 0: 2048, which is 131,072 tokens of 64
	// a block. The daemon may grant less. Longer prompts are cut, and the pick says so.
	KeysMax int

	// Queues is how many asynchronous queues there are, each with a channel to the daemon, a descriptor
	// and a goroutine of its own; 0: one for four processors, at most 8. One gives the largest batches.
	Queues int

	// Depth is how many picks of one queue may be outstanding, 1 to 4096; 0: 1024. Further calls of
	// Pick wait their turn.
	Depth int

	ConnectTimeout time.Duration // 0: 2 s

	// Spin is how long a pick that is alone in its queue looks for its answer at most before it waits; it
	// looks less, down to hardly ever, while that fails. 0: 20 microseconds; negative: wait at once.
	Spin time.Duration

	// BusyPoll makes picks look for their answer again and again in place of waiting for the descriptor: lowest
	// latency for a core given away, and to be used where there is one to give. The daemon has
	// workers.busy_poll.
	BusyPoll bool
}

// A Client is a connection to the daemon. Its methods may be called from any number of goroutines.
// It must not be used in a process forked without exec.
type Client struct {
	handle  *C.pickd_client
	info    Info
	queues  []*queue
	closing chan struct{}

	// Held for reading by calls that wait in C, so that Close comes after them.
	life   sync.RWMutex
	closed bool

	admin chan struct{} // how many of those there may be at once
}

// Info is what the daemon granted.
type Info struct {
	BlockTokens int    // tokens in a prefix block
	KeysMax     int    // longest prompt in blocks
	Version     string // of the daemon
}

const (
	depthDefault    = 1024
	queuesMax       = 8
	procsPerQueue   = 4
	blockingMax     = 4 // calls that wait in C at once, each on a thread of its own
	noDeadlineMicro = 1<<63 - 1
)

// Open connects to the daemon of this node. Close the client when it is not needed any more.
//
// Errors: [ErrNotConnected] (nobody listens at the path), [ErrAccess], [ErrPermission], [ErrTooMany],
// [ErrTimeout], [ErrVersion], [ErrInvalid], [ErrTooBig], [ErrNoMemory].
func Open(options Options) (*Client, error) {
	c := &Client{closing: make(chan struct{}), admin: make(chan struct{}, blockingMax)}
	raw := C.pickd_options{
		struct_size:        C.sizeof_pickd_options,
		keys_max:           C.uint32_t(unsigned(options.KeysMax)),
		connect_timeout_ms: C.uint32_t(unsigned(int(options.ConnectTimeout.Milliseconds()))),
	}
	if options.Socket != "" {
		raw.socket_path = C.CString(options.Socket)
		defer C.free(unsafe.Pointer(raw.socket_path))
	}
	if options.Name != "" {
		raw.name = C.CString(options.Name)
		defer C.free(unsafe.Pointer(raw.name))
	}
	if code := C.pickd_open(&raw, &c.handle); code != 0 {
		return nil, failure("open", code)
	}
	if err := c.setUp(options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) setUp(options Options) error {
	var block, keys C.uint32_t
	var version *C.char
	if code := C.pickd_daemon_info(c.handle, &block, &keys, &version); code != 0 {
		return failure("open", code)
	}
	c.info = Info{int(block), int(keys), C.GoString(version)}
	depth, count := options.Depth, options.Queues
	if depth == 0 {
		depth = depthDefault
	}
	if count <= 0 {
		count = min(max(runtime.GOMAXPROCS(0)/procsPerQueue, 1), queuesMax)
	}
	for range count {
		q, err := openQueue(c, depth, options)
		if err != nil {
			return err
		}
		c.queues = append(c.queues, q)
	}
	return nil
}

// Close ends what is under way with [ErrClosed] and closes the connection. The daemon releases the
// reservations that were not reported on. A second call does nothing.
func (c *Client) Close() error {
	c.life.Lock()
	if c.closed {
		c.life.Unlock()
		return nil
	}
	c.closed = true
	c.life.Unlock()
	close(c.closing)
	for _, q := range c.queues {
		q.end()
	}
	for _, q := range c.queues {
		q.close()
	}
	C.pickd_close(c.handle)
	return nil
}

// Info tells what the daemon granted when the client was opened.
func (c *Client) Info() Info { return c.info }

// Pick picks an endpoint and reserves its load. Report on the ticket of the result.
//
// The context's deadline is the pick's: where the daemon has not answered shortly before it, libpickd
// answers, and [Pick.Degraded] is set. When the context ends first the pick is taken back, nothing stays
// reserved, and the context's error is returned.
//
// Errors: [ErrNoEndpoint], [ErrShed], [ErrLimited], [ErrNotFound], [ErrInvalid] (both Text and TokenIDs;
// Extras out of order; EndpointsMax over 8; Priority or a count out of range), [ErrTooBig], [ErrTimeout] and
// [ErrNotConnected] (only where no endpoint is known), [ErrClosed], and the context's.
func (c *Client) Pick(ctx context.Context, request Request) (Pick, error) {
	if err := ctx.Err(); err != nil {
		return Pick{}, err
	}
	if err := request.check(); err != nil {
		return Pick{}, err
	}
	q := c.queues[0]
	if len(c.queues) > 1 {
		q = c.queues[rand.IntN(len(c.queues))]
	}
	return q.pick(ctx, &request)
}

// queueOf gives all reports of a ticket the same queue, so that they stay in order.
func (c *Client) queueOf(ticket Ticket) *queue {
	return c.queues[ticket.Sequence%uint64(len(c.queues))]
}

// blocking runs a call that waits in C: few at once, none after Close.
func (c *Client) blocking(ctx context.Context, op string, call func(timeout C.int64_t) C.int) error {
	select {
	case c.admin <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.admin }()
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed {
		return ErrClosed
	}
	timeout := int64(noDeadlineMicro)
	if until, ok := ctx.Deadline(); ok {
		timeout = microsecondsLeft(until)
	}
	code := call(C.int64_t(timeout))
	if code >= 0 {
		return nil
	}
	err := &Error{Op: op, Code: Code(-code)}
	if err.Code == ErrInvalid || err.Code == ErrTooBig {
		err.Detail = c.lastErrorOpen()
	}
	return err
}

// lastError is the client's last failure in words: of all goroutines, so it may be another's.
func (c *Client) lastError() string {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed {
		return ""
	}
	return c.lastErrorOpen()
}

// lastErrorOpen is lastError for who keeps the client open already.
func (c *Client) lastErrorOpen() string {
	var buffer [256]C.char
	C.pickd_last_error(c.handle, &buffer[0], C.size_t(len(buffer)))
	return C.GoString(&buffer[0])
}

// codeClosed stands for ErrClosed where the library's codes are.
const codeClosed = -C.int(syscall.ESHUTDOWN)
