// The two rings of a channel: sections 4 and 5 of abi/LAYOUT.md. One goroutine at a time for each of them.

package pure

import (
	"encoding/binary"
	"sync/atomic"
	"syscall"
)

const (
	unit       = 128 // bytes; every record begins at a multiple
	headBytes  = 16
	cancelRoom = unit // kept free behind submissions

	typePadding = 0
	typePick    = 1
	typeReport  = 2
	typeCancel  = 3
)

func units(bytes int) uint64 { return uint64(bytes+unit-1) &^ (unit - 1) }

// A channel is what OpenChannel gave.
type channel struct {
	segment segment
	asleep  *uint32 // the worker's word
	bell    int

	submissions []byte
	tail        uint64 // own, published in tailWord
	head        uint64 // the daemon's, as last seen
	tailWord    *uint64
	headWord    *uint64

	completions []byte
	taken       uint64 // own, published in takenWord
	takenWord   *uint64
	filledWord  *uint64
	waiting     *uint32
	keysMax     int
}

func openChannel(fd int, bell int, s *state) (*channel, error) {
	m, err := mapSegment(fd, syscall.PROT_READ|syscall.PROT_WRITE, "PKCHAN01", channelHeader)
	if err != nil {
		return nil, err
	}
	worker, indices := m.u32(68), m.u64(72)
	size := uint64(len(m))
	within := func(at, bytes uint64) bool { return at <= size && bytes <= size-at }
	power := func(n uint64) bool { return n >= unit && n&(n-1) == 0 }
	if worker >= s.workers || indices%unit != 0 || !within(indices, 512) || !power(m.u64(88)) || !power(m.u64(104)) ||
		m.u64(80)%unit != 0 || m.u64(96)%unit != 0 || !within(m.u64(80), m.u64(88)) || !within(m.u64(96), m.u64(104)) {
		return nil, syscall.EPROTO
	}
	return &channel{
		segment:     m,
		asleep:      s.asleep(worker),
		bell:        bell,
		submissions: m[m.u64(80) : m.u64(80)+m.u64(88)],
		tailWord:    m.word64(indices),
		headWord:    m.word64(indices + 128),
		filledWord:  m.word64(indices + 256),
		takenWord:   m.word64(indices + 384),
		waiting:     m.word32(indices + 392),
		completions: m[m.u64(96) : m.u64(96)+m.u64(104)],
		keysMax:     int(m.u32(112)),
	}, nil
}

// put writes a record with its sequence and publishes it; false: there is no room.
func (c *channel) put(record []byte, sequence uint64, spare uint64) bool {
	size, ring := units(len(record)), uint64(len(c.submissions))
	place := c.tail & (ring - 1)
	padding := uint64(0)
	if size > ring-place {
		padding = ring - place
	}
	if c.tail-c.head+padding+size+spare > ring {
		c.head = atomic.LoadUint64(c.headWord)
		if c.tail-c.head+padding+size+spare > ring {
			return false
		}
	}
	if padding > 0 {
		binary.LittleEndian.PutUint32(c.submissions[place:], uint32(padding))
		binary.LittleEndian.PutUint32(c.submissions[place+4:], typePadding)
		binary.LittleEndian.PutUint64(c.submissions[place+8:], 0)
		place = 0
	}
	copy(c.submissions[place:], record)
	binary.LittleEndian.PutUint64(c.submissions[place+8:], sequence)
	c.tail += padding + size
	// Partner: the worker's load before it sleeps. Go's atomics are sequentially consistent, which is the fence.
	atomic.StoreUint64(c.tailWord, c.tail)
	return true
}

// ring wakes the worker when it sleeps.
func (c *channel) ring() {
	// Partner: the worker's store before its last look at the tail.
	if atomic.LoadUint32(c.asleep) == 0 {
		return
	}
	one := [8]byte{1}
	_, _ = syscall.Write(c.bell, one[:])
}

// next returns the next completion, which stays as it is until free; nil: there is none.
func (c *channel) next() ([]byte, error) {
	// Partner: the worker's store after it wrote the record.
	filled, ring := atomic.LoadUint64(c.filledWord), uint64(len(c.completions))
	for c.taken != filled {
		left := filled - c.taken
		if left > ring || left%unit != 0 {
			return nil, syscall.EPROTO
		}
		place := c.taken & (ring - 1)
		bytes := uint64(binary.LittleEndian.Uint32(c.completions[place:]))
		taken := units(int(bytes))
		if bytes < headBytes || taken > left || place+taken > ring {
			return nil, syscall.EPROTO
		}
		c.taken += taken
		if c.completions[place+4] != typePadding {
			return c.completions[place : place+bytes], nil
		}
	}
	return nil, nil
}

// free gives back what next returned.
func (c *channel) free() { atomic.StoreUint64(c.takenWord, c.taken) }

// arm asks to be woken; false: there is something already.
func (c *channel) arm() bool {
	// Partner: the worker's load after it published an answer.
	atomic.StoreUint32(c.waiting, 1)
	return atomic.LoadUint64(c.filledWord) == c.taken
}

func (c *channel) disarm() { atomic.StoreUint32(c.waiting, 0) }
