// Client: opening, picks, reports, the end.

package pure

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	keysWanted     = 2048
	depth          = 1024
	answerBytesMax = 512
	ringBytes      = 2 * depth * answerBytesMax // room for all answers, and for what the wrap costs
	slotsMask      = 8*depth - 1
)

// A Client is a connection to the daemon with one channel, for any number of goroutines.
type Client struct {
	control *control
	state   *state
	channel *channel
	id      uint64
	keysMax int
	pipe    *os.File

	polling sync.Mutex // who takes answers; before mutex

	mutex    sync.Mutex // the submission ring, and what follows
	sequence uint64
	slots    [slotsMask + 1]*waiter // by sequence
	waiting  int                    // how many are not nil
	line     []*waiter              // for want of room, in order
	closed   error
	spin     spin
	ended    chan struct{}
}

// A waiter is a goroutine inside Pick or a report that wants an answer, or a record that waits for room.
type waiter struct {
	done     chan struct{}
	encoder  encoder // the record
	answer   []byte  // a copy of the completion
	sequence uint64
	err      error
	answered bool // somebody waits for an answer
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// Open connects to the daemon behind a socket.
func Open(socket string) (*Client, error) {
	ctl, err := dial(socket)
	if err != nil {
		return nil, err
	}
	c := &Client{control: ctl, id: rand.Uint64() | 1, ended: make(chan struct{}), spin: newSpin()}
	if err := c.handshake(); err != nil {
		ctl.leave()
		return nil, err
	}
	go c.poll()
	return c, nil
}

func (c *Client) handshake() error {
	welcome, came, err := c.control.ask(bodyHello, bodyWelcome, 1, number(2, layoutMajor), number(2, layoutMinor),
		number(8, c.id), str("pure"), number(4, keysWanted), number(8, 0))
	if err != nil {
		return err
	}
	if c.state, err = openState(came[0]); err != nil {
		return err
	}
	c.keysMax = int(welcome.number(4, 4))
	_, came, err = c.control.ask(bodyOpenChannel, bodyChannelOpened, 3, number(4, 0), number(4, ringBytes))
	if err != nil {
		return err
	}
	if c.channel, err = openChannel(came[0], came[1], c.state); err != nil {
		closeAll(came[1:])
		return err
	}
	c.keysMax = min(c.keysMax, c.channel.keysMax)
	if err := syscall.SetNonblock(came[2], true); err != nil {
		return err
	}
	c.pipe = os.NewFile(uintptr(came[2]), "pickd answers")
	return nil
}

// Pick picks an endpoint. Errors are those of section 4.2 and of the context.
func (c *Client) Pick(ctx context.Context, request *Request) (Pick, error) {
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	if err := w.encoder.encode(request, c.state, c.keysMax, answerBytesMax); err != nil {
		return Pick{}, err
	}
	if err := c.ask(ctx, w); err != nil {
		return Pick{}, err
	}
	return decode(w.answer, c.id)
}

// ask submits the waiter's record and waits for its answer.
func (c *Client) ask(ctx context.Context, w *waiter) error {
	w.answered = true
	look, err := c.submit(w)
	if err != nil {
		return err
	}
	if look > 0 {
		c.lookFor(w, look)
	}
	if ctx.Done() == nil {
		<-w.done
		return w.err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if c.withdraw(w) {
			return ctx.Err()
		}
		<-w.done
	}
	return w.err
}

// submit puts the record into the ring, or in line. How long to look for the answer: 0 when others wait, too.
func (c *Client) submit(w *waiter) (time.Duration, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed != nil {
		return 0, c.closed
	}
	if len(c.line) > 0 || !c.try(w) {
		c.line = append(c.line, w)
		c.lookForRoom()
		return 0, nil
	}
	if c.waiting == 1 && w.answered {
		return c.spin.budget(), nil
	}
	return 0, nil
}

// try puts a record into the ring; under mutex.
func (c *Client) try(w *waiter) bool {
	if w.answered && c.waiting == depth {
		return false
	}
	sequence := c.sequence + 1
	if w.answered {
		for c.slots[sequence&slotsMask] != nil { // of one that waits for long
			sequence++
		}
	}
	if !c.channel.put(w.encoder.record, sequence, cancelRoom) {
		return false
	}
	c.sequence, w.sequence = sequence, sequence
	if w.answered {
		c.slots[sequence&slotsMask] = w
		c.waiting++
	}
	c.channel.ring()
	return true
}

// lookForRoom sees to it that somebody does where no answers are to come that tell of it; under mutex.
func (c *Client) lookForRoom() {
	if c.waiting == 0 && len(c.line) == 1 {
		time.AfterFunc(100*time.Microsecond, func() {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.admit()
			if len(c.line) == 1 {
				c.lookForRoom()
			}
		})
	}
}

// admit submits those in line as far as there is room; under mutex.
func (c *Client) admit() {
	for len(c.line) > 0 && c.closed == nil {
		w := c.line[0]
		if !c.try(w) {
			return
		}
		c.line[0] = nil
		c.line = c.line[1:]
		if !w.answered {
			waiters.Put(w)
		}
	}
}

// withdraw takes a pick back; false: its answer came first.
func (c *Client) withdraw(w *waiter) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for at, other := range c.line {
		if other == w {
			c.line = append(c.line[:at], c.line[at+1:]...)
			return true
		}
	}
	if c.slots[w.sequence&slotsMask] != w {
		return false
	}
	c.slots[w.sequence&slotsMask] = nil
	c.waiting--
	if w.encoder.record[4] == typePick {
		var cancel [headBytes]byte
		cancel[0], cancel[4] = headBytes, typeCancel
		c.channel.put(cancel[:], w.sequence, 0)
		c.channel.ring()
	}
	return true
}

// Report hands a report over.
func (c *Client) Report(report *Report) error {
	w := waiters.Get().(*waiter)
	record, err := encodeReport(w.encoder.record, report, false)
	if err != nil {
		waiters.Put(w)
		return err
	}
	w.encoder.record, w.answered = record, false
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed != nil {
		return c.closed
	}
	if len(c.line) > 0 || !c.try(w) {
		c.line = append(c.line, w)
		c.lookForRoom()
		return nil
	}
	waiters.Put(w)
	return nil
}

// ReportAndWait waits for what the daemon says.
func (c *Client) ReportAndWait(ctx context.Context, report *Report) error {
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	record, err := encodeReport(w.encoder.record, report, true)
	if err != nil {
		return err
	}
	w.encoder.record = record
	if err := c.ask(ctx, w); err != nil {
		return err
	}
	if len(w.answer) < 20 {
		return syscall.EPROTO
	}
	if status := int32(u32(w.answer[16:])); status != 0 {
		return syscall.Errno(-status)
	}
	return nil
}

// ---- Answers -------------------------------------------------------------------------------------

// take hands what has been answered to those who wait; under polling. How many there were.
func (c *Client) take() int {
	const batch = 64
	var found [batch]*waiter
	count, more := 0, true
	c.mutex.Lock()
	for more = true; more && count < batch; {
		record, err := c.channel.next()
		if err != nil {
			c.mutex.Unlock()
			c.end(err)
			return 0
		}
		if record == nil {
			more = false
			break
		}
		sequence := u64(record[8:])
		slot := &c.slots[sequence&slotsMask]
		if w := *slot; w != nil && w.sequence == sequence { // else it was taken back
			w.answer = append(w.answer[:0], record...)
			*slot = nil
			c.waiting--
			found[count] = w
			count++
		}
		c.channel.free()
	}
	c.admit()
	c.mutex.Unlock()
	for _, w := range found[:count] {
		w.err = nil
		w.done <- struct{}{}
	}
	return count
}

// poll takes answers when the pipe tells of some.
func (c *Client) poll() {
	defer close(c.ended)
	raw, err := c.pipe.SyscallConn()
	if err != nil {
		c.end(err)
		return
	}
	gone := false
	_ = raw.Read(func(fd uintptr) bool {
		var bytes [64]byte
		for {
			size, err := syscall.Read(int(fd), bytes[:])
			if size == 0 && err == nil {
				gone = true // what lies in the ring is still good
			}
			if size < len(bytes) {
				break
			}
		}
		c.polling.Lock()
		defer c.polling.Unlock()
		c.channel.disarm()
		for {
			for c.take() > 0 {
			}
			if gone || c.channel.arm() {
				return gone
			}
		}
	})
	c.end(syscall.ENOTCONN)
}

// lookFor looks for the answer of one that is alone, if nobody else takes answers now.
func (c *Client) lookFor(w *waiter, longest time.Duration) {
	if !c.polling.TryLock() {
		return
	}
	if c.isClosed() { // and else stays open while polling is held
		c.polling.Unlock()
		return
	}
	c.channel.disarm()
	until := time.Now().Add(longest)
	for len(w.done) == 0 {
		if c.take() == 0 && time.Now().After(until) {
			break
		}
	}
	c.mutex.Lock()
	c.spin.learn(len(w.done) > 0)
	c.mutex.Unlock()
	for !c.channel.arm() {
		c.take()
	}
	c.polling.Unlock()
}

func (c *Client) isClosed() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.closed != nil
}

// end fails all who wait, and all calls after it.
func (c *Client) end(why error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed == nil {
		c.closed = why
	}
	for at, w := range c.slots {
		if w != nil {
			c.slots[at] = nil
			w.err = c.closed
			w.done <- struct{}{}
		}
	}
	c.waiting = 0
	for _, w := range c.line {
		if w.answered {
			w.err = c.closed
			w.done <- struct{}{}
		}
	}
	c.line = nil
}

// Close ends what is under way and the connection.
func (c *Client) Close() error {
	c.end(os.ErrClosed)
	c.pipe.Close()
	<-c.ended
	c.control.leave()
	c.polling.Lock()
	defer c.polling.Unlock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.channel.segment != nil {
		syscall.Close(c.channel.bell)
		syscall.Munmap(c.channel.segment)
		syscall.Munmap(c.state.segment)
		c.channel.segment = nil
	}
	return nil
}

func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
