// Request: what callers fill in. Plain data; submit.go turns it into C memory.

package pickd

import (
	"math"
	"strconv"
	"time"
)

// A Request describes what is to be served. Only what is known need be filled in; the zero Request picks by
// load among all endpoints.
type Request struct {
	Model   string // at most 255 bytes; empty: any
	Adapter string // LoRA adapter, at most 255 bytes; its prefixes are its own
	Salt    string // requests of different salts share no prefix (tenants)

	// The prompt, as text (segments are joined without a separator; how it is cut does not matter) or as
	// token ids, not both. The prompt is hashed here and does not leave the process.
	Text     []string
	TokenIDs []uint32

	PromptTokens int // 0: the number of TokenIDs, or a quarter of the bytes of Text
	Extras       []Extra

	SessionID  string // at most 255 bytes
	FairnessID string // at most 255 bytes
	RequestID  string // at most 255 bytes; shown in explanations

	// Subset holds the names or addresses that the pick may go to, at most 512. nil: all. One that is
	// empty but not nil means nobody, and gives ErrNoEndpoint.
	Subset []string

	Attributes []Attribute // headers and labels for plugins that ask for them; at most 32

	SLOTTFT time.Duration // wanted time to the first token; 0: none
	SLOITL  time.Duration // wanted time between tokens; 0: none

	Priority             int // -32768 to 32767; 0 is the ordinary one, negative may be shed
	ExpectedOutputTokens int // 0: unknown
	EndpointsMax         int // how many endpoints the pick lists, 1 to 8; 0: 8

	Stream bool // the answer will be streamed
	Media  bool // images, sounds or the like stand in the prompt, though not as Extras
	DryRun bool // pick, but reserve and remember nothing
}

// An Extra is content that stands in the prompt but is not text: an image, audio, video. Equal digests at equal
// places share prefix blocks, different ones never do. Extras must be in order of Offset.
type Extra struct {
	Offset int    // where it stands: bytes of Text, or number of token ids before it
	Digest []byte // 16 to 64 bytes of any good hash of the content
}

// An Attribute is a header or label of the request; key and value have at most 255 bytes each.
type Attribute struct {
	Key, Value string
}

// milliseconds keeps what is no SLO (0) as it is, and what is absurd too: the daemon counts it.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// duration of a predicted time; 0 where it is unknown (NaN).
func duration(ms float64) time.Duration {
	if math.IsNaN(ms) || ms <= 0 {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// isCount says whether the library's counts hold n; the largest number stands for "unknown" there.
func isCount(n int) bool { return n >= 0 && int64(n) < math.MaxUint32 }

// check refuses what would be another number by the time the library looks at it.
func (r *Request) check() error {
	for _, field := range []struct {
		name string
		n    int
	}{{"PromptTokens", r.PromptTokens}, {"ExpectedOutputTokens", r.ExpectedOutputTokens}} {
		if field.n < 0 || int64(field.n) > math.MaxUint32 {
			return &Error{Op: "pick", Code: ErrInvalid, Detail: field.name + " is " + strconv.Itoa(field.n) +
				": 0 to 4294967295 are counts"}
		}
	}
	return nil
}

// unsigned clamps a count into what the library takes; negative becomes "too large", which it refuses
// where that matters.
func unsigned(n int) uint32 {
	if n < 0 || int64(n) > math.MaxUint32-1 {
		return math.MaxUint32 - 1
	}
	return uint32(n)
}
