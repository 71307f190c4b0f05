// Control messages: the few FlatBuffers of abi/pickd.fbs that a client needs, written and read by hand.

package pure

import (
	"encoding/binary"
	"syscall"
)

// The members of the union Body, by their place in it.
const (
	bodyHello         = 1
	bodyWelcome       = 2
	bodyOpenChannel   = 3
	bodyChannelOpened = 4
	bodyOutcome       = 13
	bodyGoodbye       = 14
)

const fileIdentifier = "PKCT"

// A field of a table to be written: a number of so many bytes, or a string.
type field struct {
	bytes int
	value uint64
	text  string
}

func number(bytes int, value uint64) field { return field{bytes: bytes, value: value} }
func str(text string) field                { return field{text: text} }

type builder struct{ b []byte }

func (b *builder) align(to int) {
	for len(b.b)%to != 0 {
		b.b = append(b.b, 0)
	}
}

func (b *builder) put(at, bytes int, value uint64) {
	for i := range bytes {
		b.b[at+i] = byte(value >> (8 * i))
	}
}

func (b *builder) room(bytes int) int {
	at := len(b.b)
	b.b = append(b.b, make([]byte, bytes)...)
	return at
}

// table appends a table with all of the fields, in their order in the schema; returns its place.
func (b *builder) table(fields []field) int {
	b.align(2)
	vtable := b.room(4 + 2*len(fields))
	b.align(8)
	table := b.room(4)
	b.put(table, 4, uint64(table-vtable))
	places := make([]int, len(fields))
	for at, f := range fields {
		bytes := f.bytes
		if bytes == 0 {
			bytes = 4 // the offset of a string
		}
		b.align(bytes)
		places[at] = b.room(bytes)
		b.put(places[at], bytes, f.value)
		b.put(vtable+4+2*at, 2, uint64(places[at]-table))
	}
	b.put(vtable, 2, uint64(4+2*len(fields)))
	b.put(vtable+2, 2, uint64(len(b.b)-table))
	for at, f := range fields {
		if f.bytes != 0 {
			continue
		}
		b.align(4)
		b.put(places[at], 4, uint64(len(b.b)-places[at]))
		size := b.room(4)
		b.put(size, 4, uint64(len(f.text)))
		b.b = append(append(b.b, f.text...), 0)
	}
	return table
}

// message is a whole packet.
func message(requestNumber uint32, kind byte, fields ...field) []byte {
	b := &builder{b: make([]byte, 8, 256)}
	copy(b.b[4:], fileIdentifier)
	root := b.table([]field{number(4, uint64(requestNumber)), number(1, uint64(kind)), number(4, 0)})
	b.put(0, 4, uint64(root))
	body := b.table(fields)
	// The offset of the body is the table's last field, and counts from where it stands.
	vtable := root - int(u32(b.b[root:]))
	at := root + int(binary.LittleEndian.Uint16(b.b[vtable+8:]))
	b.put(at, 4, uint64(body-at))
	return b.b
}

// A table that was read. Places that are not in the packet give no field.
type table struct {
	b  []byte
	at int
}

func (t table) within(at, bytes int) bool { return at >= 0 && bytes >= 0 && at <= len(t.b)-bytes }

// place of a field; 0: absent.
func (t table) place(index, bytes int) int {
	if !t.within(t.at, 4) {
		return 0
	}
	vtable := t.at - int(int32(binary.LittleEndian.Uint32(t.b[t.at:])))
	if !t.within(vtable, 4) {
		return 0
	}
	entry := 4 + 2*index
	if entry+2 > int(binary.LittleEndian.Uint16(t.b[vtable:])) || !t.within(vtable+entry, 2) {
		return 0
	}
	offset := int(binary.LittleEndian.Uint16(t.b[vtable+entry:]))
	if offset == 0 || !t.within(t.at+offset, bytes) {
		return 0
	}
	return t.at + offset
}

func (t table) number(index, bytes int) uint64 {
	at := t.place(index, bytes)
	if at == 0 {
		return 0
	}
	value := uint64(0)
	for i := range bytes {
		value |= uint64(t.b[at+i]) << (8 * i)
	}
	return value
}

func (t table) follow(index int) int {
	at := t.place(index, 4)
	if at == 0 {
		return -1
	}
	return at + int(u32(t.b[at:]))
}

func (t table) text(index int) string {
	at := t.follow(index)
	if at < 0 || !t.within(at, 4) {
		return ""
	}
	size := int(u32(t.b[at:]))
	if !t.within(at+4, size) {
		return ""
	}
	return string(t.b[at+4 : at+4+size])
}

// parse reads a packet: whose answer it is, what it is, and its table.
func parse(packet []byte) (requestNumber uint32, kind byte, body table, err error) {
	if len(packet) < 8 || string(packet[4:8]) != fileIdentifier {
		return 0, 0, table{}, syscall.EPROTO
	}
	root := table{packet, int(u32(packet))}
	at := root.follow(2)
	if at < 0 {
		return 0, 0, table{}, syscall.EPROTO
	}
	return uint32(root.number(0, 4)), byte(root.number(1, 1)), table{packet, at}, nil
}
