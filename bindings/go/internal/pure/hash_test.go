// What hashing costs, for `go test -bench`.

package pure

import (
	"strings"
	"testing"
)

func BenchmarkKeysOfAThousandTokens(b *testing.B) {
	h, a := goldenHasher(), algorithmOf(goldenText[:])
	prompt, keys := []byte(strings.Repeat("x", 4000)), []byte(nil)
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		keys, _ = h.appendKeys(keys[:0], &a, 1, prompt, nil, 2048)
	}
	if len(keys) != 16*8 {
		b.Fatalf("%d bytes of keys", len(keys))
	}
}
