// Subset hints: which endpoints the proxy allows.

package extproc_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
)

// hintOf is the metadata of a hint that lists addresses.
func hintOf(t *testing.T, addresses ...any) *structpb.Struct {
	t.Helper()
	values, err := structpb.NewList(addresses)
	if err != nil {
		t.Fatal(err)
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"x-gateway-destination-endpoint-subset": structpb.NewListValue(values)}}
}

// strangers are addresses of nobody.
func strangers(count int) []any {
	made := make([]any, count)
	for at := range made {
		made[at] = fmt.Sprintf("10.1.%d.%d:80", at/250, at%250)
	}
	return made
}

func TestASubsetHintIsHeeded(t *testing.T) {
	g := startGateway(t, extproc.Options{Fallbacks: 7})
	for _, c := range []struct {
		hint *structpb.Struct
		to   string // empty: nobody
	}{
		{hintOf(t, "127.0.0.1:9002"), "127.0.0.1:9002"},
		{hintOf(t, "10.9.9.9:1", "127.0.0.1:9001"), "127.0.0.1:9001"},
		{hintOf(t), ""},
		{hintOf(t, "10.9.9.9:1"), ""},
		{hintOf(t, 7.0), ""},
	} {
		e := g.exchange(t)
		e.hint = c.hint
		if c.to != "" {
			if to := e.routed(completion(5, 100)); to != c.to {
				t.Errorf("%v: it goes to %q", c.hint, to)
			}
			continue
		}
		e.requestHeaders(false)
		e.requestBody(completion(5, 100), true)
		e.refusal(e.receive(), 503)
		e.ends()
	}
	e := g.exchange(t)
	e.hint = &structpb.Struct{} // the namespace without the key is no hint
	if to := e.routed(completion(5, 100)); strings.Count(to, ",") != engines-1 {
		t.Errorf("it goes to %q", to)
	}
}

func TestAnEndpointBehindManyUnknownAddressesOfASubsetIsFound(t *testing.T) {
	g := startGateway(t, extproc.Options{Fallbacks: 7})
	for _, count := range []int{511, 512, 600, 4095} {
		e := g.exchange(t)
		e.hint = hintOf(t, append(strangers(count), "127.0.0.1:9002")...)
		if to := e.routed(completion(20, 100)); to != "127.0.0.1:9002" {
			t.Errorf("behind %d others: it goes to %q", count, to)
		}
	}
	e := g.exchange(t)
	e.hint = hintOf(t, strangers(1200)...)
	e.requestHeaders(false)
	e.requestBody(completion(20, 100), true)
	e.refusal(e.receive(), 503)
	e.ends()
}

func TestWhatIsTooLongForAnAddressTakesNothingFromASubset(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.hint = hintOf(t, strings.Repeat("a", 100_000), "127.0.0.1:9001")
	if to := e.routed(completion(21, 100)); to != "127.0.0.1:9001" {
		t.Errorf("it goes to %q", to)
	}
}
