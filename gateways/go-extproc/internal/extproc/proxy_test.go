// What the tests share: a server on a real daemon, and a proxy that speaks to it.

package extproc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/body"
	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
	"github.com/pickd/pickd/gateways/go-extproc/internal/testrun"
)

const engines = 4

// A gateway is the server under test on a real daemon, and what the proxy has to speak to it.
type gateway struct {
	daemon *testrun.Daemon
	page   *metrics.Page
	proxy  extprocv3.ExternalProcessorClient
}

const bodyMax = 1 << 20

// endpointsYAML are engine-0 to engine-3 at 127.0.0.1:9000 to 9003, which nobody scrapes.
func endpointsYAML() string {
	var text strings.Builder
	text.WriteString("scrape: {enabled: false}\nendpoints:\n")
	for at := range engines {
		fmt.Fprintf(&text, "  - {name: engine-%d, address: \"127.0.0.1:%d\", models: [m]}\n", at, 9000+at)
	}
	return text.String()
}

func startGateway(t *testing.T, options extproc.Options, yaml ...string) *gateway {
	t.Helper()
	return startGatewayOf(t, options, append(yaml, endpointsYAML())...)
}

// startGatewayOf starts one whose daemon has no other endpoints than those in its YAML.
func startGatewayOf(t *testing.T, options extproc.Options, yaml ...string) *gateway {
	t.Helper()
	g := &gateway{daemon: testrun.StartDaemon(t, yaml...), page: &metrics.Page{}}
	client, err := pickd.Open(pickd.Options{Socket: g.daemon.Socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if options.PickTimeout == 0 {
		options.PickTimeout = 20 * time.Second // a late machine is no fault
	}
	bodies, err := body.NewLibrary(bodyMax)
	if err != nil {
		t.Fatal(err)
	}
	g.page.More = bodies.WriteMetrics
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server,
		extproc.NewServer(client, bodies.Reader, g.page, options))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	g.proxy = extprocv3.NewExternalProcessorClient(connection)
	return g
}

// An exchange is one request of the proxy.
type exchange struct {
	t      *testing.T
	stream extprocv3.ExternalProcessor_ProcessClient
	cancel context.CancelFunc
	first  bool
	modes  *extprocv3.ProtocolConfiguration
	hint   *structpb.Struct // subset
}

func fullDuplex() *extprocv3.ProtocolConfiguration {
	return &extprocv3.ProtocolConfiguration{
		RequestBodyMode:  filterv3.ProcessingMode_FULL_DUPLEX_STREAMED,
		ResponseBodyMode: filterv3.ProcessingMode_FULL_DUPLEX_STREAMED,
	}
}

func (g *gateway) exchange(t *testing.T) *exchange {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	stream, err := g.proxy.Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &exchange{t: t, stream: stream, cancel: cancel, first: true, modes: fullDuplex()}
}

func (e *exchange) send(message *extprocv3.ProcessingRequest) {
	e.t.Helper()
	if e.first {
		e.first = false
		message.ProtocolConfig = e.modes
		if e.hint != nil {
			message.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
				"envoy.lb.subset_hint": e.hint}}
		}
	}
	if err := e.stream.Send(message); err != nil && !errors.Is(err, io.EOF) {
		e.t.Fatal(err)
	}
}

func (e *exchange) receive() *extprocv3.ProcessingResponse {
	e.t.Helper()
	message, err := e.stream.Recv()
	if err != nil {
		e.t.Fatal(err)
	}
	return message
}

// ends says that the server has nothing more to say.
func (e *exchange) ends() {
	e.t.Helper()
	e.stream.CloseSend()
	if message, err := e.stream.Recv(); err != io.EOF {
		e.t.Fatalf("%v, %v in place of the end", message, err)
	}
}

func httpHeaders(pairs []string, end bool) *extprocv3.HttpHeaders {
	headers := &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{}, EndOfStream: end}
	for at := 0; at < len(pairs); at += 2 {
		headers.Headers.Headers = append(headers.Headers.Headers,
			&corev3.HeaderValue{Key: pairs[at], RawValue: []byte(pairs[at+1])})
	}
	return headers
}

func (e *exchange) requestHeaders(end bool, more ...string) {
	e.t.Helper()
	pairs := append([]string{":method", "POST", ":path", "/v1/completions", ":authority", "gateway",
		"content-type", "application/json"}, more...)
	e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{
		RequestHeaders: httpHeaders(pairs, end)}})
}

func (e *exchange) requestBody(piece string, end bool) {
	e.t.Helper()
	e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(piece), EndOfStream: end}}})
}

func (e *exchange) responseHeaders(end bool, served string, more ...string) *extprocv3.ProcessingResponse {
	e.t.Helper()
	message := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: httpHeaders(more, end)}}
	if served != "" {
		message.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb": {
			Fields: map[string]*structpb.Value{
				"x-gateway-destination-endpoint-served": structpb.NewStringValue(served)}}}}
	}
	e.send(message)
	answer := e.receive()
	if answer.GetResponseHeaders() == nil {
		e.t.Fatalf("%v in place of an answer to response headers", answer)
	}
	return answer
}

func (e *exchange) responseBody(piece string, end bool) {
	e.t.Helper()
	e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte(piece), EndOfStream: end}}})
	streamed := e.receive().GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse()
	if streamed == nil || string(streamed.Body) != piece || streamed.EndOfStream != end {
		e.t.Fatalf("%q (end %v) came back as %v", piece, end, streamed)
	}
}

// destination is where the answer to request headers sends the request; header and metadata must agree.
func (e *exchange) destination(answer *extprocv3.ProcessingResponse) string {
	e.t.Helper()
	response := answer.GetRequestHeaders().GetResponse()
	if answer.GetRequestHeaders() == nil {
		response = answer.GetRequestBody().GetResponse()
	}
	if response == nil {
		e.t.Fatalf("%v in place of a destination", answer)
	}
	if !response.GetClearRouteCache() {
		e.t.Error("the route is not chosen anew")
	}
	told := ""
	for _, header := range response.GetHeaderMutation().GetSetHeaders() {
		if header.GetHeader().GetKey() == "x-gateway-destination-endpoint" {
			told = string(header.GetHeader().GetRawValue())
			if header.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
				e.t.Error("what a client sends as destination survives")
			}
		}
	}
	inMetadata := answer.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()["x-gateway-destination-endpoint"].GetStringValue()
	if told == "" || told != inMetadata {
		e.t.Errorf("header says %q, metadata says %q", told, inMetadata)
	}
	return told
}

// refusal is the answer of the gateway's own.
func (e *exchange) refusal(answer *extprocv3.ProcessingResponse, status int) *extprocv3.ImmediateResponse {
	e.t.Helper()
	immediate := answer.GetImmediateResponse()
	if immediate == nil || int(immediate.GetStatus().GetCode()) != status {
		e.t.Fatalf("%v in place of status %d", answer, status)
	}
	if !strings.Contains(string(immediate.Body), fmt.Sprintf(`"code":%d`, status)) {
		e.t.Errorf("the body says %s", immediate.Body)
	}
	return immediate
}

// routed sends a whole request in one piece and returns where it goes.
func (e *exchange) routed(text string, headers ...string) string {
	e.t.Helper()
	e.requestHeaders(false, headers...)
	e.requestBody(text, true)
	to := e.destination(e.receive())
	if streamed := e.receive().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse(); streamed == nil ||
		string(streamed.Body) != text || !streamed.EndOfStream {
		e.t.Fatalf("the body came back as %v", streamed)
	}
	return to
}

func completion(seed, bytes int) string {
	var prompt strings.Builder
	for at := 0; prompt.Len() < bytes; at++ {
		fmt.Fprintf(&prompt, "%d of prompt %d. ", at, seed)
	}
	return fmt.Sprintf(`{"model": "m", "prompt": "%s", "stream": true}`, prompt.String())
}
