// Mapping segments and checking their headers: sections 2, 3.1 and 4 of abi/LAYOUT.md.

package pure

import (
	"encoding/binary"
	"syscall"
	"unsafe"
)

const (
	layoutMajor   = 1
	layoutMinor   = 0
	byteOrderMark = 0x01020304
	featureHot    = 1
	pageHeader    = 768 // of a state segment
	channelHeader = 120
	workerBytes   = 128
)

// A segment is mapped memory that the daemon writes, too.
type segment []byte

func (s segment) u16(at int) int    { return int(binary.LittleEndian.Uint16(s[at:])) }
func (s segment) u32(at int) uint32 { return binary.LittleEndian.Uint32(s[at:]) }
func (s segment) u64(at int) uint64 { return binary.LittleEndian.Uint64(s[at:]) }

// word32 and word64 are for the words that change: to be used with sync/atomic. The mapping is page-aligned, so these
// are aligned where the layout says.
func (s segment) word32(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&s[at])) }
func (s segment) word64(at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&s[at])) }

// mapSegment maps a descriptor and closes it, whatever becomes of it.
func mapSegment(fd int, protection int, magic string, headerBytes int) (segment, error) {
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return nil, err
	}
	if stat.Size < int64(headerBytes) {
		return nil, syscall.EPROTO
	}
	mapped, err := syscall.Mmap(fd, 0, int(stat.Size), protection, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	s := segment(mapped)
	switch {
	case s.u64(56) == 0 || string(s[:8]) != magic || s.u32(24) != byteOrderMark:
		err = syscall.EPROTO
	case s.u16(8) != layoutMajor || s.u32(28)&^featureHot != 0:
		err = syscall.EPROTONOSUPPORT
	case int(s.u32(12)) < headerBytes || s.u64(16) != uint64(stat.Size):
		err = syscall.EPROTO
	}
	if err != nil {
		syscall.Munmap(mapped)
		return nil, err
	}
	return s, nil
}

// state is what a client that picks through the daemon needs of the state segment.
type state struct {
	segment    segment
	hasher     *hasher
	algorithms []keyAlgorithm
	workersAt  uint64
	workers    uint32
}

func openState(fd int) (*state, error) {
	s, err := mapSegment(fd, syscall.PROT_READ, "PKSTAT01", pageHeader)
	if err != nil {
		return nil, err
	}
	made := &state{segment: s, hasher: newHasher(s[160:352]), workersAt: s.u64(368), workers: s.u32(364)}
	for at := 96; at < 160; at += 8 {
		if s[at] != 0 {
			made.algorithms = append(made.algorithms, algorithmOf(s[at:at+8]))
		}
	}
	if made.workersAt > uint64(len(s)) || uint64(made.workers)*workerBytes > uint64(len(s))-made.workersAt {
		return nil, syscall.EPROTO
	}
	return made, nil
}

func (s *state) algorithm(kind byte) *keyAlgorithm {
	for at := range s.algorithms {
		if s.algorithms[at].kind == kind {
			return &s.algorithms[at]
		}
	}
	return nil
}

// asleep is the word of a worker.
func (s *state) asleep(worker uint32) *uint32 {
	return s.segment.word32(s.workersAt + uint64(worker)*workerBytes)
}
