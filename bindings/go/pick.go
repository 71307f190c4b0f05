// Pick: the answer as callers see it, and the call that waits for it.

package pickd

// #include "bridge.h"
import "C"

import (
	"strconv"
	"time"
	"unsafe"
)

// A Pick is the answer to a [Request].
type Pick struct {
	Ticket    Ticket     // names the request in reports
	Endpoints []Endpoint // the winner, then fallbacks in order; at least one
	Prefill   *Endpoint  // who computes the prompt first, of a request that is split; else nil
	Encode    *Endpoint  // who encodes images and the like before that; nil: nobody of its own

	Reason   Reason // why the winner won
	Degraded bool   // picked by the library itself: the daemon is away
	Cut      bool   // the prompt was longer than the key limit

	PromptTokens int           // as used for the pick
	TTFT         time.Duration // predicted time to the first token; 0: unknown
	ITL          time.Duration // predicted time between tokens; 0: unknown
	HashTime     time.Duration // what hashing the prompt took
}

// Address of the winner, as configured.
func (p Pick) Address() string { return p.Endpoints[0].Address }

// Name of the winner.
func (p Pick) Name() string { return p.Endpoints[0].Name }

// An Endpoint of a [Pick].
type Endpoint struct {
	Address     string // as configured: "host:port" or a URL
	Name        string
	Role        Role
	MatchTokens int     // prompt tokens thought cached there
	Score       float64 // what the scheduling profile gave it
}

// A Ticket names one picked request. It stays good across reconnects and daemon restarts.
type Ticket struct {
	Client, Sequence uint64
}

// String is for logs.
func (t Ticket) String() string {
	return strconv.FormatUint(t.Client, 16) + "/" + strconv.FormatUint(t.Sequence, 10)
}

// A Role is what an endpoint does of a request.
type Role uint8

// The roles, as in pickd.h.
const (
	RoleBoth Role = iota
	RoleDecode
	RolePrefill
	RoleEncode
)

func (r Role) String() string {
	names := [...]string{"both", "decode", "prefill", "encode"}
	if int(r) < len(names) {
		return names[r]
	}
	return "role " + strconv.Itoa(int(r))
}

// A Reason says why the first endpoint of a [Pick] won.
type Reason uint8

// The reasons, as in pickd.h.
const (
	ReasonNone     Reason = iota
	ReasonScore           // highest score, alone
	ReasonTie             // drawn at random among equals
	ReasonPrefix          // highest score, and the longest prefix match
	ReasonSession         // the endpoint of the session
	ReasonOnly            // the only candidate
	ReasonPolicy          // a policy without scores, such as round-robin
	ReasonFallback        // nobody is healthy: the least bad
	ReasonDegraded        // picked by the library itself: the daemon is away
	// by load and prefix: no model of latencies is ready for a profile that goes by them
	ReasonUnpredicted
)

func (r Reason) String() string {
	return C.GoString(C.pickd_reason_name(C.pickd_reason(r)))
}

// pickOf copies an answer out of C memory: one string for all names and addresses, one slice.
func pickOf(answer *C.pickdgo_answer) Pick {
	pick := Pick{
		Ticket:       Ticket{uint64(answer.ticket.client), uint64(answer.ticket.sequence)},
		Reason:       Reason(answer.reason),
		Degraded:     answer.flags&C.PICKD_RESULT_DEGRADED != 0,
		Cut:          answer.flags&C.PICKD_RESULT_CUT != 0,
		PromptTokens: int(answer.prompt_tokens),
		TTFT:         duration(float64(answer.ttft_ms)),
		ITL:          duration(float64(answer.itl_ms)),
		HashTime:     time.Duration(answer.hash_ns),
	}
	text := string(unsafe.Slice((*byte)(unsafe.Pointer(&answer.text[0])), int(answer.text_size)))
	count := int(answer.endpoint_count)
	pick.Endpoints = make([]Endpoint, count)
	for at := range count {
		text = endpointOf(&answer.endpoints[at], text, &pick.Endpoints[at])
	}
	if answer.has_prefill != 0 {
		pick.Prefill = new(Endpoint)
		text = endpointOf(&answer.endpoints[count], text, pick.Prefill)
		count++
	}
	if answer.has_encode != 0 {
		pick.Encode = new(Endpoint)
		endpointOf(&answer.endpoints[count], text, pick.Encode)
	}
	return pick
}

// endpointOf takes an endpoint's strings off the front of text and returns the rest.
func endpointOf(from *C.pickdgo_endpoint, text string, to *Endpoint) string {
	address, name := int(from.address_size), int(from.name_size)
	*to = Endpoint{
		Address:     text[:address],
		Name:        text[address : address+name],
		Role:        Role(from.role),
		MatchTokens: int(from.match_tokens),
		Score:       float64(from.score),
	}
	return text[address+name:]
}
