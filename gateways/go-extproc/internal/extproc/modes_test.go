// What a proxy does otherwise than in full-duplex mode, and what it must not do.

package extproc_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/testrun"
)

func requestTrailers() *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{
		RequestTrailers: &extprocv3.HttpTrailers{}}}
}

func (g *gateway) buffered(t *testing.T) *exchange {
	t.Helper()
	e := g.exchange(t)
	e.modes = &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_BUFFERED}
	e.requestHeaders(false)
	if answer := e.receive(); answer.GetRequestHeaders() == nil {
		t.Fatalf("%v in place of going on", answer)
	}
	return e
}

// endsWith says that the server ends the stream with this code.
func (e *exchange) endsWith(code codes.Code) {
	e.t.Helper()
	if message, err := e.stream.Recv(); status.Code(err) != code {
		e.t.Fatalf("%v, %v in place of %v", message, err, code)
	}
}

func TestABufferedBodyIsAnsweredBeforeItsTrailers(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.buffered(t)
	e.requestBody(completion(22, 100), false) // trailers are to follow
	if to := e.destination(e.receive()); !strings.HasPrefix(to, "127.0.0.1:900") {
		t.Errorf("it goes to %q", to)
	}
	e.send(requestTrailers())
	if answer := e.receive(); answer.GetRequestTrailers() == nil {
		t.Errorf("%v in place of an answer to trailers", answer)
	}
	e.ends()
}

func TestTrailersBeforeABufferedBodyEndTheStream(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.buffered(t)
	e.send(requestTrailers())
	e.endsWith(codes.InvalidArgument)
}

func TestASecondRequestInAStreamEndsItAndReleasesTheFirst(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.requestHeaders(true)
	e.destination(e.receive())
	e.requestHeaders(true)
	e.endsWith(codes.InvalidArgument)
	testrun.Eventually(t, "nothing stays reserved", func() bool { return g.daemon.Inflight(t) == 0 })
}

// A journal is what was logged, for a test that reads it while servers write.
type journal struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.text.Write(line)
}

func (j *journal) count(what string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return strings.Count(j.text.String(), what)
}

func TestAModeThatKeepsBodiesBackIsWarnedOfOnce(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	log := &journal{}
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	g := startGateway(t, extproc.Options{})
	const warning = "request_body_mode="
	g.exchange(t).routed(completion(23, 100)) // full duplex
	e := g.buffered(t)
	e.requestBody(completion(23, 100), true)
	e.destination(e.receive())
	e = g.exchange(t)
	e.modes = &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_STREAMED}
	e.requestHeaders(true) // no body: nothing is kept back
	e.destination(e.receive())
	if told := log.count(warning); told != 0 {
		t.Errorf("warned %d times of what is right", told)
	}
	for _, mode := range []filterv3.ProcessingMode_BodySendMode{filterv3.ProcessingMode_STREAMED,
		filterv3.ProcessingMode_BUFFERED_PARTIAL, filterv3.ProcessingMode_NONE} {
		e := g.exchange(t)
		e.modes = &extprocv3.ProtocolConfiguration{RequestBodyMode: mode}
		e.requestHeaders(false)
		e.destination(e.receive())
	}
	if told := log.count(warning + "STREAMED"); told != 1 || log.count(warning) != 1 {
		t.Errorf("warned %d times, %d of STREAMED", log.count(warning), told)
	}
}

func TestHeadersThatOnlyAPickerMaySetAreTakenOut(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	names := []string{"x-prefiller-host-port", "x-encoder-hosts-ports", "x-kv-cache-source-host-port",
		"x-data-parallel-host-port"}
	e := g.exchange(t)
	var spoofed []string
	for _, name := range names {
		spoofed = append(spoofed, name, "evil:1")
	}
	e.requestHeaders(true, spoofed...)
	removed := strings.Join(e.receive().GetRequestHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(), " ")
	for _, name := range names {
		if !strings.Contains(removed, name) {
			t.Errorf("%s is left; these go: %s", name, removed)
		}
	}
}
