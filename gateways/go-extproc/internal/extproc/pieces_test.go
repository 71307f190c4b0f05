// How a body is kept; inside the package, as no message shows what memory it takes.

package extproc

import (
	"bytes"
	"testing"
)

func TestABodyInTinyPiecesIsKeptInFewAndComesBackWhole(t *testing.T) {
	var held pieces
	var whole []byte
	for at := range 200_000 {
		held.add(nil, false)
		held.add([]byte{byte(at)}, false)
		whole = append(whole, byte(at))
	}
	large := bytes.Repeat([]byte("x"), 2*pieceLargest)
	held.add(large, false)
	held.add(nil, true)
	if len(held) > 5 {
		t.Errorf("%d pieces are kept", len(held))
	}
	if !bytes.Equal(bytes.Join(held, nil), append(whole, large...)) {
		t.Error("another body comes back")
	}
}

func TestABodyOfNothingComesBackAsItsEnd(t *testing.T) {
	var held pieces
	held.add(nil, false)
	held.add(nil, false)
	if len(held) != 0 {
		t.Errorf("%d pieces of nothing are kept", len(held))
	}
	held.add(nil, true)
	if len(held) != 1 || len(held[0]) != 0 {
		t.Errorf("the end comes back as %v", held)
	}
}
