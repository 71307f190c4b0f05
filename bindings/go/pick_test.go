// Picks, requests and errors against a real daemon.

package pickd_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"net/http"
	"syscall"
	"testing"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
)

func TestPickListsTheWinnerAndFallbacks(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	pick := mustPick(t, client, pickd.Request{Model: "m", Text: []string{prompt(1, 1000)}})
	if len(pick.Endpoints) != engines {
		t.Fatalf("%d endpoints listed, not %d", len(pick.Endpoints), engines)
	}
	seen := map[string]string{}
	for _, endpoint := range pick.Endpoints {
		seen[endpoint.Name] = endpoint.Address
	}
	if len(seen) != engines || seen["engine-2"] != "127.0.0.1:9002" {
		t.Errorf("listed %v", seen)
	}
	if pick.PromptTokens != 1000 || pick.Degraded || pick.Cut || pick.Prefill != nil {
		t.Errorf("%+v", pick)
	}
	if pick.Ticket == (pickd.Ticket{}) {
		t.Error("no ticket")
	}
}

func TestAPromptIsMatchedHoweverItIsCutIntoSegments(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	text := prompt(2, 640)
	first := mustPick(t, client, pickd.Request{Model: "m", Text: []string{text}})
	second := mustPick(t, client, pickd.Request{Model: "m", Text: []string{text[:1], "", text[1:700], text[700:]}})
	if second.Name() != first.Name() || second.Endpoints[0].MatchTokens < 576 {
		t.Errorf("picked %s, then %+v", first.Name(), second.Endpoints[0])
	}
	if other := mustPick(t, client, pickd.Request{Model: "m", Salt: "tenant", Text: []string{text}}); other.Endpoints[0].MatchTokens != 0 {
		t.Errorf("another salt matches %d tokens", other.Endpoints[0].MatchTokens)
	}
}

func TestTokenIDsExtrasAndAttributesReachTheLibrary(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	ids := make([]uint32, 640)
	for at := range ids {
		ids[at] = uint32(at)
	}
	image := func(name string) []pickd.Extra {
		digest := sha256.Sum256([]byte(name))
		return []pickd.Extra{{Offset: 100, Digest: digest[:]}}
	}
	request := pickd.Request{Model: "m", TokenIDs: ids, Extras: image("cat"),
		Attributes: []pickd.Attribute{{"x-tier", "gold"}, {"x-region", ""}}, SessionID: "s",
		FairnessID: "f", RequestID: "r", SLOTTFT: time.Second, Priority: 1, Stream: true}
	first := mustPick(t, client, request)
	if first.PromptTokens != len(ids) {
		t.Errorf("%d prompt tokens", first.PromptTokens)
	}
	if again := mustPick(t, client, request); again.Endpoints[0].MatchTokens < 576 {
		t.Errorf("the same image matches %d tokens", again.Endpoints[0].MatchTokens)
	}
	request.Extras = image("dog")
	if other := mustPick(t, client, request); other.Endpoints[0].MatchTokens >= 128 {
		t.Errorf("another image matches %d tokens", other.Endpoints[0].MatchTokens)
	}
}

func TestASubsetIsHeededAndAnEmptyOneMeansNobody(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	for range 8 {
		pick := mustPick(t, client, pickd.Request{Model: "m", Subset: []string{"engine-3", "127.0.0.1:9001"}})
		for _, endpoint := range pick.Endpoints {
			if endpoint.Name != "engine-3" && endpoint.Name != "engine-1" {
				t.Fatalf("picked %s", endpoint.Name)
			}
		}
	}
	_, err := client.Pick(soon(t), pickd.Request{Model: "m", Subset: []string{}})
	if !errors.Is(err, pickd.ErrNoEndpoint) || pickd.HTTPStatus(err) != http.StatusServiceUnavailable {
		t.Errorf("%v, %d", err, pickd.HTTPStatus(err))
	}
}

func TestErrorsHaveCodesWordsAndStatus(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	for _, c := range []struct {
		request pickd.Request
		code    pickd.Code
		status  int
	}{
		{pickd.Request{Model: "unknown"}, pickd.ErrNotFound, 404},
		{pickd.Request{Model: "m", Text: []string{"a"}, TokenIDs: []uint32{1}}, pickd.ErrInvalid, 400},
		{pickd.Request{Model: prompt(1, 100)}, pickd.ErrTooBig, 400},
		{pickd.Request{Model: "m", EndpointsMax: 9}, pickd.ErrInvalid, 400},
		{pickd.Request{Model: "m", EndpointsMax: -1}, pickd.ErrInvalid, 400},
		{pickd.Request{Model: "m", Priority: 40000}, pickd.ErrInvalid, 400},
		{pickd.Request{Model: "m", Subset: []string{"nobody"}}, pickd.ErrNoEndpoint, 503},
	} {
		_, err := client.Pick(soon(t), c.request)
		var told *pickd.Error
		if !errors.As(err, &told) || told.Code != c.code || told.Op != "pick" || told.Error() == "" {
			t.Errorf("%v in place of %v", err, c.code)
		}
		if !errors.Is(err, c.code) || !errors.Is(err, syscall.Errno(c.code)) {
			t.Errorf("%v is not %v", err, c.code)
		}
		if got := pickd.HTTPStatus(err); got != c.status {
			t.Errorf("%v is status %d, not %d", err, got, c.status)
		}
	}
}

func TestStatusOfEveryKindOfError(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{nil, 200}, {pickd.ErrShed, 429}, {pickd.ErrLimited, 429}, {pickd.ErrNotConnected, 503},
		{pickd.ErrTimeout, 504}, {context.DeadlineExceeded, 504}, {context.Canceled, 499},
		{pickd.ErrClosed, 503}, {&pickd.Error{Op: "pick", Code: pickd.ErrTooBig}, 400},
	} {
		if got := pickd.HTTPStatus(c.err); got != c.status {
			t.Errorf("%v is status %d, not %d", c.err, got, c.status)
		}
	}
	if !errors.Is(&pickd.Error{Code: pickd.ErrTimeout}, context.DeadlineExceeded) {
		t.Error("a timeout is not a context's deadline")
	}
}

func TestOpenWithoutADaemonSaysNotConnected(t *testing.T) {
	_, err := pickd.Open(pickd.Options{Socket: t.TempDir() + "/nobody", ConnectTimeout: time.Second})
	if !errors.Is(err, pickd.ErrNotConnected) {
		t.Errorf("%v", err)
	}
}

func TestReportsMoveAndEndReservations(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{Queues: 3})
	ctx := soon(t)
	pick := mustPick(t, client, pickd.Request{Model: "m", Text: []string{prompt(3, 100)}})
	for _, report := range []pickd.Report{
		{Ticket: pick.Ticket, Kind: pickd.Fallback, Endpoint: pick.Endpoints[1].Address},
		{Ticket: pick.Ticket, Kind: pickd.FirstToken},
		{Ticket: pick.Ticket, Kind: pickd.Progress, OutputTokens: pickd.Tokens(5)},
	} {
		if err := client.ReportAndWait(ctx, report); err != nil {
			t.Fatal(err)
		}
	}
	done := pickd.Report{Ticket: pick.Ticket, Kind: pickd.Done, PromptTokens: pickd.Tokens(100),
		CachedTokens: pickd.Tokens(0), OutputTokens: pickd.Tokens(12)}
	if err := client.ReportAndWait(ctx, done); err != nil {
		t.Fatal(err)
	}
	if err := client.ReportAndWait(ctx, done); !errors.Is(err, pickd.ErrStale) {
		t.Errorf("reported twice: %v", err)
	}
	if err := client.Report(ctx, done); err != nil {
		t.Errorf("handing over: %v", err)
	}
	if err := client.Report(ctx, pickd.Report{Ticket: pick.Ticket}); !errors.Is(err, pickd.ErrInvalid) {
		t.Errorf("a report without a kind: %v", err)
	}
	other := mustPick(t, client, pickd.Request{Model: "m"})
	err := client.ReportAndWait(ctx, pickd.Report{Ticket: other.Ticket, Kind: pickd.Fallback, Endpoint: "nobody"})
	if !errors.Is(err, pickd.ErrNotFound) {
		t.Errorf("a fallback to nobody: %v", err)
	}
}

func TestCountsKnowWhetherTheyAreKnown(t *testing.T) {
	for _, n := range []int{-1, -1 << 33, math.MaxUint32, 1 << 33} {
		if got, known := pickd.Tokens(n).Get(); known {
			t.Errorf("%d is known, as %d", n, got)
		}
	}
	if n, known := pickd.Tokens(math.MaxUint32 - 1).Get(); n != math.MaxUint32-1 || !known {
		t.Error("the largest count is unknown")
	}
	if n, known := pickd.Tokens(0).Get(); n != 0 || !known {
		t.Error("0 is unknown")
	}
}

func TestCountsOfARequestThatAreNoneAreRefused(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	for _, n := range []int{-1, -1 << 40, 1 << 32, 1 << 40} {
		for _, request := range []pickd.Request{{PromptTokens: n}, {ExpectedOutputTokens: n}} {
			if pick, err := client.Pick(soon(t), request); !errors.Is(err, pickd.ErrInvalid) {
				t.Errorf("%d: %+v, %v", n, pick, err)
			}
		}
	}
	mustPick(t, client, pickd.Request{PromptTokens: math.MaxUint32, ExpectedOutputTokens: math.MaxUint32})
}

func TestEndpointsComeGoAndDrain(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	ctx := soon(t)
	spec := pickd.EndpointSpec{Name: "late", Address: "127.0.0.1:9100", Models: []string{"n", "o"},
		Labels: map[string]string{"zone": "a"}, CapacityTokens: 1000}
	if err := client.AddEndpoint(ctx, spec); err != nil {
		t.Fatal(err)
	}
	if err := client.AddEndpoint(ctx, spec); !errors.Is(err, pickd.ErrExists) {
		t.Errorf("added twice: %v", err)
	}
	if pick := mustPick(t, client, pickd.Request{Model: "o"}); pick.Name() != "late" || pick.Reason != pickd.ReasonOnly {
		t.Errorf("picked %s by %v", pick.Name(), pick.Reason)
	}
	spec.Address = "127.0.0.1:9101"
	if err := client.UpdateEndpoint(ctx, spec); err != nil {
		t.Fatal(err)
	}
	if err := client.ResetEndpoint(ctx, "late"); err != nil {
		t.Fatal(err)
	}
	if pick := mustPick(t, client, pickd.Request{Model: "n"}); pick.Address() != spec.Address {
		t.Errorf("picked %s", pick.Address())
	}
	if err := client.DrainEndpoint(ctx, "late", true); err != nil {
		t.Fatal(err)
	}
	if err := client.DrainEndpoint(ctx, "late", false); err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveEndpoint(ctx, "late"); err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveEndpoint(ctx, "late"); !errors.Is(err, pickd.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}
