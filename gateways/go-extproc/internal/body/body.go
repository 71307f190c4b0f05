// Package body reads what passes through the gateway: request bodies into what a pick needs, answers into
// reports. It knows nothing of Envoy.
package body

import (
	"errors"

	pickd "github.com/pickd/pickd/bindings/go"
)

// ErrTooLarge is returned for a body over the limit. Nothing of it is kept.
var ErrTooLarge = errors.New("the body is over the limit")

// An Event tells what a piece of an answer brought; they are added up.
type Event uint8

// The events.
const (
	FirstToken Event = 1 << iota // the first token came with this piece; once an answer
	MoreTokens                   // tokens came with this piece
	Ended                        // the stream said that it is complete
)

// A Reader reads one request and its answer, then the next. One goroutine at a time.
type Reader interface {
	// Begin begins a request; headers are those of HTTP, with names in lower case.
	Begin(path string, headers []pickd.Attribute) error
	// Add adds the next piece of its body, of any size.
	Add(piece []byte) error
	// End says that it is complete. What it returns says why there is no prompt, and keeps no request from
	// being picked.
	End() error
	// Request fills the fields that the body and its headers tell. Its strings are good until Begin or Release.
	Request(request *pickd.Request) error

	// BeginAnswer begins the answer of that request, when its headers have come.
	BeginAnswer(status int, headers []pickd.Attribute) error
	// AddAnswer adds the next piece of it, of any size.
	AddAnswer(piece []byte) Event
	// EndAnswer says that it is complete, whether it ended well or not.
	EndAnswer()
	// Report fills kind and counts of a report, of what has come so far.
	Report(report *pickd.Report) error

	// Release gives the reader back. It must not be used any more.
	Release()
}

// New gives a reader for one request.
type New func() (Reader, error)
