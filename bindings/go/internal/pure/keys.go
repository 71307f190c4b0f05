// From a prompt to keys, as section 6 of abi/LAYOUT.md says. Knows no ring and no daemon.

package pure

import "encoding/binary"

// The kinds of key algorithms.
const (
	kindText = 1
	kindIDs  = 2
)

// A keyAlgorithm is an entry of the state header's list.
type keyAlgorithm struct {
	raw        [8]byte // as it stands there: it goes into the root
	id         byte
	kind       byte
	tail       bool // the last, shorter block is hashed too
	blockBytes int
}

func algorithmOf(raw []byte) keyAlgorithm {
	a := keyAlgorithm{id: raw[0], kind: raw[1], tail: raw[2] == 1, blockBytes: int(u32(raw[4:]))}
	copy(a.raw[:], raw)
	return a
}

// A hasher makes keys with the secret of one state segment.
type hasher struct {
	secret      [secretBytes]byte
	left, right uint64
	saltless    uint64 // the hash of no salt
}

func newHasher(secret []byte) *hasher {
	h := &hasher{}
	copy(h.secret[:], secret)
	h.left, h.right = u64(secret[136:])|1, u64(secret[144:])|1
	h.saltless = h.hash(nil)
	return h
}

func (h *hasher) hash(data []byte) uint64 { return xxh3(data, &h.secret) }

func (h *hasher) chain(parent, of uint64) uint64 {
	return fold((parent^h.left), of+h.right) + of
}

func (h *hasher) root(a *keyAlgorithm, name, salt string) uint64 {
	var buffer [8 + 4 + 255 + 4 + 8]byte
	at := copy(buffer[:], a.raw[:])
	binary.LittleEndian.PutUint32(buffer[at:], uint32(len(name)))
	at += 4
	at += copy(buffer[at:], name)
	binary.LittleEndian.PutUint32(buffer[at:], uint32(len(salt)))
	salted := h.saltless
	if salt != "" {
		salted = h.hash([]byte(salt))
	}
	binary.LittleEndian.PutUint64(buffer[at+4:], salted)
	return h.hash(buffer[:at+12])
}

// appendKeys appends the keys of a prompt to `to`, at most `longest`; cut tells whether there were more.
func (h *hasher) appendKeys(to []byte, a *keyAlgorithm, root uint64, prompt []byte, extras []Extra,
	longest int) (keys []byte, cut bool) {
	key, unit := root, 1
	if a.kind == kindIDs {
		unit = 4
	}
	count := 0
	for begin := 0; ; begin += a.blockBytes {
		end := min(begin+a.blockBytes, len(prompt))
		// An extra at the end of a prompt whose last block is full stands in a block of its own.
		if begin >= end && len(extras) == 0 || end-begin < a.blockBytes && !a.tail {
			return to, false
		}
		if count == longest {
			return to, true
		}
		of := h.hash(prompt[begin:max(begin, end)])
		for len(extras) > 0 {
			offset := extras[0].Offset*unit - begin
			if offset >= a.blockBytes {
				break
			}
			of = h.chain(of^uint64(offset), h.hash(extras[0].Digest))
			extras = extras[1:]
		}
		key = h.chain(key, of)
		to = binary.LittleEndian.AppendUint64(to, key)
		count++
	}
}
