// Requests and reports as records, and answers out of them: section 4.2 of abi/LAYOUT.md.

package pure

import (
	"encoding/binary"
	"math"
	"syscall"
)

// A Request, as that of the package above.
type Request struct {
	Model, Adapter, Salt             string
	Text                             []string
	TokenIDs                         []uint32
	PromptTokens                     int
	Extras                           []Extra
	SessionID, FairnessID, RequestID string
	Subset                           []string
	Attributes                       [][2]string
	SLOTTFTMs, SLOITLMs              float64
	Priority                         int
	ExpectedOutputTokens             int
	EndpointsMax                     int
	Stream, DryRun, Media            bool
}

// An Extra stands at an offset of the prompt, in bytes of text or in token ids.
type Extra struct {
	Offset int
	Digest []byte
}

// A Ticket names a pick.
type Ticket struct{ Client, Sequence uint64 }

// A Pick is the answer to a Request.
type Pick struct {
	Ticket        Ticket
	Endpoints     []Endpoint
	Prefill       *Endpoint
	Reason        byte
	Cut           bool
	PromptTokens  int
	TTFTMs, ITLMs float32 // NaN: unknown
}

// An Endpoint of a Pick.
type Endpoint struct {
	Address, Name string
	Role          byte
	MatchTokens   int
	Score         float32
}

// Unknown is a count of tokens that is not told.
const Unknown = math.MaxUint32

// A Report of a kind of section 4.2.
type Report struct {
	Ticket                                   Ticket
	Kind                                     byte
	PromptTokens, CachedTokens, OutputTokens uint32
	Endpoint                                 string
}

const (
	pickBytes     = 48
	fieldBytesMax = 24 << 10
	stringMax     = 255
	extrasMax     = 4096
	subsetMax     = 512
	attributesMax = 32

	fieldModel     = 1
	fieldAdapter   = 2
	fieldSession   = 3
	fieldFairness  = 4
	fieldRequest   = 5
	fieldSubset    = 6
	fieldAttribute = 7
)

// An encoder makes pick records in memory of its own.
type encoder struct {
	record []byte
	prompt []byte
}

func (e *encoder) field(kind byte, text string) {
	e.record = append(e.record, kind, 0, byte(len(text)), byte(len(text)>>8))
	e.record = append(e.record, text...)
}

func (e *encoder) named(kind byte, text string) {
	if text != "" {
		e.field(kind, text)
	}
}

func check(r *Request) error {
	for _, text := range [...]string{r.Model, r.Adapter, r.SessionID, r.FairnessID, r.RequestID} {
		if len(text) > stringMax {
			return syscall.E2BIG
		}
	}
	if len(r.Extras) > extrasMax || len(r.Subset) > subsetMax || len(r.Attributes) > attributesMax {
		return syscall.E2BIG
	}
	if len(r.TokenIDs) > 0 && len(r.Text) > 0 || r.EndpointsMax < 0 || r.EndpointsMax > 8 ||
		r.Priority != int(int16(r.Priority)) {
		return syscall.EINVAL
	}
	size, last := len(r.TokenIDs), 0
	for _, text := range r.Text {
		size += len(text)
	}
	for _, extra := range r.Extras {
		if extra.Offset < last || extra.Offset > size || len(extra.Digest) < 16 || len(extra.Digest) > 64 {
			return syscall.EINVAL
		}
		last = extra.Offset
	}
	return nil
}

// encode makes the record of a pick; its sequence is written when it goes into a ring.
func (e *encoder) encode(r *Request, s *state, keysMax int, answerBytesMax uint32) error {
	if err := check(r); err != nil {
		return err
	}
	var head [pickBytes]byte
	e.record = append(e.record[:0], head[:]...)
	algorithm, cut, tokens := e.keys(r, s, keysMax)
	keyCount := (len(e.record) - pickBytes) / 8
	e.named(fieldModel, r.Model)
	e.named(fieldAdapter, r.Adapter)
	e.named(fieldSession, r.SessionID)
	e.named(fieldFairness, r.FairnessID)
	e.named(fieldRequest, r.RequestID)
	for _, name := range r.Subset {
		e.field(fieldSubset, name)
	}
	for _, pair := range r.Attributes {
		if len(pair[0]) > stringMax || len(pair[1]) > stringMax {
			return syscall.E2BIG
		}
		e.field(fieldAttribute, pair[0]+"\x00"+pair[1])
	}
	fieldBytes := len(e.record) - pickBytes - 8*keyCount
	if fieldBytes > fieldBytesMax {
		return syscall.E2BIG
	}
	flags := byte(0)
	for at, set := range [...]bool{r.Stream, cut, r.Subset != nil, r.DryRun, r.Media || len(r.Extras) > 0} {
		if set {
			flags |= 1 << at
		}
	}
	if r.PromptTokens > 0 {
		tokens = r.PromptTokens
	}
	h := e.record
	le := binary.LittleEndian
	le.PutUint32(h, uint32(len(h)))
	h[4], h[5] = typePick, flags
	le.PutUint32(h[16:], uint32(keyCount))
	le.PutUint32(h[20:], uint32(fieldBytes))
	le.PutUint32(h[24:], uint32(tokens))
	le.PutUint32(h[28:], uint32(r.ExpectedOutputTokens))
	le.PutUint32(h[32:], math.Float32bits(float32(r.SLOTTFTMs)))
	le.PutUint32(h[36:], math.Float32bits(float32(r.SLOITLMs)))
	le.PutUint16(h[40:], uint16(int16(r.Priority)))
	h[42], h[43] = algorithm, 8
	if r.EndpointsMax > 0 {
		h[43] = byte(r.EndpointsMax)
	}
	le.PutUint32(h[44:], answerBytesMax)
	return nil
}

// keys appends the prompt's keys to the record; returns the algorithm's id and the prompt's tokens.
func (e *encoder) keys(r *Request, s *state, keysMax int) (id byte, cut bool, tokens int) {
	kind := byte(kindText)
	if len(r.TokenIDs) > 0 {
		kind, tokens = kindIDs, len(r.TokenIDs)
	}
	a := s.algorithm(kind)
	if a == nil {
		return 0, false, tokens
	}
	e.prompt = e.prompt[:0]
	prompt := e.prompt
	if kind == kindIDs {
		for _, one := range r.TokenIDs {
			prompt = binary.LittleEndian.AppendUint32(prompt, one)
		}
		e.prompt = prompt
	} else if len(r.Text) == 1 {
		prompt = bytesOf(r.Text[0])
		tokens = (len(prompt) + 3) / 4
	} else {
		for _, text := range r.Text {
			prompt = append(prompt, text...)
		}
		e.prompt = prompt
		tokens = (len(prompt) + 3) / 4
	}
	if len(prompt) == 0 && len(r.Extras) == 0 {
		return a.id, false, 0
	}
	name := r.Model
	if r.Adapter != "" {
		name = r.Adapter
	}
	root := s.hasher.root(a, name, r.Salt)
	e.record, cut = s.hasher.appendKeys(e.record, a, root, prompt, r.Extras, keysMax)
	return a.id, cut, tokens
}

func encodeReport(to []byte, r *Report, wait bool) ([]byte, error) {
	if r.Kind < 1 || r.Kind > 6 || (r.Kind == 5) != (r.Endpoint != "") {
		return nil, syscall.EINVAL
	}
	if len(r.Endpoint) > 127 {
		return nil, syscall.E2BIG
	}
	var head [48]byte
	le := binary.LittleEndian
	le.PutUint32(head[:], uint32(48+len(r.Endpoint)))
	head[4] = typeReport
	if wait {
		head[5] = 1
	}
	le.PutUint64(head[16:], r.Ticket.Client)
	le.PutUint64(head[24:], r.Ticket.Sequence)
	head[32], head[33] = r.Kind, byte(len(r.Endpoint))
	le.PutUint32(head[36:], r.PromptTokens)
	le.PutUint32(head[40:], r.CachedTokens)
	le.PutUint32(head[44:], r.OutputTokens)
	return append(append(to[:0], head[:]...), r.Endpoint...), nil
}

const endpointBytes = 24

// decode reads a picked record, which is private memory by now.
func decode(record []byte, client uint64) (Pick, error) {
	if len(record) < 40 {
		return Pick{}, syscall.EPROTO
	}
	if status := int32(binary.LittleEndian.Uint32(record[16:])); status != 0 {
		return Pick{}, syscall.Errno(-status)
	}
	count, textBytes := int(record[21]), int(binary.LittleEndian.Uint16(record[22:]))
	textAt := 40 + endpointBytes*count
	prefill := int(u32(record[36:]))
	if count < 1 || count > 8 || textAt+textBytes+prefill > len(record) || prefill != 0 && prefill < endpointBytes {
		return Pick{}, syscall.EPROTO
	}
	pick := Pick{
		Ticket:       Ticket{client, u64(record[8:])},
		Endpoints:    make([]Endpoint, count),
		Reason:       record[20],
		Cut:          record[5]&1 != 0,
		PromptTokens: int(u32(record[24:])),
		TTFTMs:       math.Float32frombits(uint32(u32(record[28:]))),
		ITLMs:        math.Float32frombits(uint32(u32(record[32:]))),
	}
	text, ok := string(record[textAt:textAt+textBytes]), true
	for at := range count {
		if text, ok = readEndpoint(record[40+endpointBytes*at:], text, &pick.Endpoints[at]); !ok {
			return Pick{}, syscall.EPROTO
		}
	}
	if prefill > 0 {
		at := textAt + textBytes
		pick.Prefill = new(Endpoint)
		if _, ok = readEndpoint(record[at:], string(record[at+endpointBytes:at+prefill]), pick.Prefill); !ok {
			return Pick{}, syscall.EPROTO
		}
	}
	return pick, nil
}

// readEndpoint takes its strings off the front of text and returns the rest.
func readEndpoint(record []byte, text string, to *Endpoint) (string, bool) {
	name, address := int(record[17]), int(record[18])
	if name+address > len(text) {
		return "", false
	}
	*to = Endpoint{
		Name:        text[:name],
		Address:     text[name : name+address],
		Role:        record[16],
		MatchTokens: int(u32(record[8:])),
		Score:       math.Float32frombits(uint32(u32(record[12:]))),
	}
	return text[name+address:], true
}
