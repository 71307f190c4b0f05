// The Endpoint Picker Protocol rule by rule; the test plays Envoy's part.

package extproc_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
	"github.com/pickd/pickd/gateways/go-extproc/internal/testrun"
)

// ---- The request ---------------------------------------------------------------------------------

func TestTheBodyComesBackInPiecesAfterTheDestination(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	text := completion(1, 5000)
	pieces := []string{text[:1], text[1:3000], "", text[3000:]}
	e.requestHeaders(false, "x-gateway-destination-endpoint", "10.0.0.1:1")
	for at, piece := range pieces {
		e.requestBody(piece, at == len(pieces)-1)
	}
	if to := e.destination(e.receive()); !strings.HasPrefix(to, "127.0.0.1:900") || strings.Contains(to, ",") {
		t.Errorf("it goes to %q", to)
	}
	back := ""
	for ended := false; !ended; { // small pieces may come back put together
		answer := e.receive()
		streamed := answer.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		if streamed == nil {
			t.Fatalf("%v in place of a piece", answer)
		}
		back += string(streamed.Body)
		ended = streamed.EndOfStream
	}
	if back != text {
		t.Errorf("%q came back", back)
	}
	e.ends()
}

func TestABodyIsReadTheSameHoweverItIsCut(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	text := completion(2, 200_000)
	var first string
	for _, count := range []int{1, 17, 1000} {
		e := g.exchange(t)
		e.requestHeaders(false)
		size := (len(text) + count - 1) / count
		for rest := text; rest != ""; {
			piece := rest[:min(size, len(rest))]
			rest = rest[len(piece):]
			e.requestBody(piece, rest == "")
		}
		to := e.destination(e.receive())
		var back strings.Builder
		for back.Len() < len(text) {
			back.Write(e.receive().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody())
		}
		if back.String() != text {
			t.Fatal("another body came back")
		}
		e.ends()
		if first == "" {
			first = to
		} else if to != first { // 50,000 tokens are cached there
			t.Errorf("in %d pieces it goes to %s, in one to %s", count, to, first)
		}
		testrun.Eventually(t, "the request is over", func() bool { return g.daemon.Inflight(t) == 0 })
	}
}

func TestFallbacksFollowTheWinner(t *testing.T) {
	g := startGateway(t, extproc.Options{Fallbacks: 2})
	to := strings.Split(g.exchange(t).routed(completion(3, 100)), ",")
	if len(to) != 3 || to[0] == to[1] || to[1] == to[2] || to[0] == to[2] {
		t.Errorf("it goes to %v", to)
	}
}

func TestARequestWithoutABodyIsAnsweredAtOnce(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.requestHeaders(true)
	if to := e.destination(e.receive()); !strings.HasPrefix(to, "127.0.0.1:900") {
		t.Errorf("it goes to %q", to)
	}
	e.ends()
}

func TestTrailersEndABodyThatDidNotEndItself(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	text := completion(4, 100)
	e.requestHeaders(false)
	e.requestBody(text, false)
	e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{
		RequestTrailers: &extprocv3.HttpTrailers{}}})
	e.destination(e.receive())
	streamed := e.receive().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
	if streamed == nil || string(streamed.Body) != text || streamed.EndOfStream {
		t.Errorf("the body came back as %v", streamed)
	}
	if answer := e.receive(); answer.GetRequestTrailers() == nil {
		t.Errorf("%v in place of an answer to trailers", answer)
	}
	e.ends()
}

func TestErrorsOfAPickBecomeStatuses(t *testing.T) {
	g := startGateway(t, extproc.Options{}, `scheduling:
  apiVersion: llm-d.ai/v1alpha1
  kind: EndpointPickerConfig
  plugins:
    - {type: label-selector-filter, parameters: {matchLabels: {nobody: has-it}}}
    - {type: queue-scorer}
    - {type: max-score-picker}
  schedulingProfiles:
    - name: default
      plugins:
        - {pluginRef: label-selector-filter}
        - {pluginRef: queue-scorer}
        - {pluginRef: max-score-picker}`)
	e := g.exchange(t)
	e.requestHeaders(false)
	e.requestBody(`{"model": "of nobody", "prompt": "p"}`, true)
	e.refusal(e.receive(), 404)
	e.ends()
	e = g.exchange(t)
	e.requestHeaders(false)
	e.requestBody(completion(6, 10), true)
	shed := e.refusal(e.receive(), 429)
	reason := ""
	for _, header := range shed.GetHeaders().GetSetHeaders() {
		if header.GetHeader().GetKey() == "x-llm-d-request-dropped-reason" {
			reason = string(header.GetHeader().GetRawValue())
		}
	}
	if reason != "rejected-saturated" {
		t.Errorf("the reason is %q", reason)
	}
	e.ends()
	if g.page.Requests(metrics.UnknownModel) != 1 || g.page.Requests(metrics.Shed) != 1 {
		t.Error("they were counted otherwise")
	}
}

func TestABodyOverTheLimitIsAnsweredWith413(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.requestHeaders(false)
	for range 3 {
		e.requestBody(strings.Repeat("x", bodyMax/2), false)
	}
	e.refusal(e.receive(), 413)
	e.ends()
}

func TestBodiesThatCannotBeReadArePickedByLoad(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	for _, text := range []string{"", "{", `{"model": 7}`, "\xff\xfe\x00", "[]", `"text"`, "null",
		strings.Repeat("[", 100_000), `{"model": "m", "prompt": {"a": [`} {
		for range 2 {
			if to := g.exchange(t).routed(text); !strings.HasPrefix(to, "127.0.0.1:900") {
				t.Errorf("%.20q goes to %q", text, to)
			}
		}
	}
}

func TestPathsWithAQueryOrASubPathAreRead(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	for _, path := range []string{"/v1/messages?beta=true", "/v1/chat/completions", "/v1/completions?x=/y"} {
		e := g.exchange(t)
		e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{
			RequestHeaders: httpHeaders([]string{":method", "POST", ":path", path}, false)}})
		e.requestBody(`{"model": "of nobody", "max_tokens": 1, "prompt": "p", "messages": [{"role": "user", "content": "p"}]}`, true)
		e.refusal(e.receive(), 404) // whoever knows the model has read the body
		e.ends()
	}
}

func TestHeadersThatMeanNothingDoNoHarm(t *testing.T) {
	g := startGateway(t, extproc.Options{Objectives: map[string]int{"batch": -5}, Attributes: []string{"x-tier"}})
	for _, headers := range [][]string{
		{"x-llm-d-slo-ttft-ms", "NaN"}, {"x-llm-d-slo-ttft-ms", "-5"}, {"x-slo-tpot-ms", "1e300"},
		{"x-slo-ttft-ms", "soon"}, {"x-llm-d-slo-ttft-ms", "250"},
		{"x-llm-d-inference-objective", "batch"}, {"x-gateway-inference-objective", "unknown"},
		{"x-tier", strings.Repeat("x", 1000)}, {"x-tier", "gold"}, {"epp-profile", "default"},
		{"x-session-token", "abc"},
	} {
		if to := g.exchange(t).routed(completion(7, 100), headers...); !strings.HasPrefix(to, "127.0.0.1:900") {
			t.Errorf("%v: it goes to %q", headers, to)
		}
	}
}

func TestTheDecodeEndpointHearsWhoComputesThePrompt(t *testing.T) {
	g := startGatewayOf(t, extproc.Options{}, `scrape: {enabled: false}
endpoints:
  - {name: prefill, address: "http://127.0.0.1:9100", role: prefill}
  - {name: decode, address: "127.0.0.1:9200", role: decode}
scheduling:
  apiVersion: llm-d.ai/v1alpha1
  kind: EndpointPickerConfig
  plugins:
    - {type: always-disagg-pd-decider}
    - {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}
    - {type: prefill-filter}
    - {type: decode-filter}
    - {type: max-score-picker}
  schedulingProfiles:
    - {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: max-score-picker}]}
    - {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: max-score-picker}]}`)
	e := g.exchange(t)
	e.requestHeaders(false)
	e.requestBody(completion(15, 4000), true)
	answer := e.receive()
	if to := e.destination(answer); to != "127.0.0.1:9200" {
		t.Errorf("it goes to %q", to)
	}
	prefill := ""
	for _, header := range answer.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if header.GetHeader().GetKey() == "x-prefiller-host-port" {
			prefill = string(header.GetHeader().GetRawValue())
		}
	}
	if prefill != "127.0.0.1:9100" {
		t.Errorf("the prompt is computed by %q", prefill)
	}
}

func TestTheDecodeEndpointHearsWhoEncodesAnImage(t *testing.T) {
	g := startGatewayOf(t, extproc.Options{}, `scrape: {enabled: false}
endpoints:
  - {name: encode, address: "http://127.0.0.1:9300", role: encode}
  - {name: decode, address: "127.0.0.1:9200", role: decode}
scheduling:
  apiVersion: llm-d.ai/v1alpha1
  kind: EndpointPickerConfig
  plugins:
    - {type: always-disagg-multimodal-decider}
    - {type: disagg-profile-handler, parameters: {deciders: {encode: always-disagg-multimodal-decider}}}
    - {type: encode-filter}
    - {type: decode-filter}
    - {type: max-score-picker}
  schedulingProfiles:
    - {name: encode, plugins: [{pluginRef: encode-filter}, {pluginRef: max-score-picker}]}
    - {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: max-score-picker}]}`)
	image := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},` +
		`{"type":"image_url","image_url":{"url":"https://images.example/cat.png"}}]}]}`
	text := `{"model":"m","messages":[{"role":"user","content":"what is this?"}]}`
	for body, want := range map[string]string{image: "127.0.0.1:9300", text: ""} {
		e := g.exchange(t)
		e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{
			RequestHeaders: httpHeaders([]string{":method", "POST", ":path", "/v1/chat/completions"}, false)}})
		e.requestBody(body, true)
		answer := e.receive()
		if to := e.destination(answer); to != "127.0.0.1:9200" {
			t.Errorf("it goes to %q", to)
		}
		encode := ""
		for _, header := range answer.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
			if header.GetHeader().GetKey() == "x-encoder-hosts-ports" {
				encode = string(header.GetHeader().GetRawValue())
			}
		}
		if encode != want {
			t.Errorf("%.60s: encoded by %q, not by %q", body, encode, want)
		}
	}
}

func TestABufferedBodyIsAnsweredWithTheDestination(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.modes = &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_BUFFERED}
	e.requestHeaders(false)
	if answer := e.receive(); answer.GetRequestHeaders() == nil {
		t.Fatalf("%v in place of going on", answer)
	}
	e.requestBody(completion(8, 100), true)
	if to := e.destination(e.receive()); !strings.HasPrefix(to, "127.0.0.1:900") {
		t.Errorf("it goes to %q", to)
	}
	e.responseHeaders(false, "", ":status", "200")
	e.ends()
	testrun.Eventually(t, "the request is over", func() bool { return g.page.Reports(metrics.Done) == 1 })
}

func TestAProxyThatOnlyWatchesIsNotAnswered(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.send(&extprocv3.ProcessingRequest{ObservabilityMode: true,
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: httpHeaders(nil, true)}})
	e.ends()
	if g.page.Requests(metrics.Picked) != 0 {
		t.Error("it was picked for")
	}
}

func TestWhileTheDaemonIsAwayPicksGoOn(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	g.exchange(t).routed(completion(9, 100))
	g.daemon.Kill()
	if to := g.exchange(t).routed(completion(9, 100)); !strings.HasPrefix(to, "127.0.0.1:900") {
		t.Errorf("it goes to %q", to)
	}
	if g.page.Requests(metrics.Degraded) != 1 {
		t.Error("it was not counted as degraded")
	}
}

// ---- The answer ----------------------------------------------------------------------------------

const tokenEvent = `data: {"choices": [{"text": "word"}]}` + "\r\n\r\n"

func TestAStreamedAnswerPassesAtOnceAndFreesWhatWasReserved(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	to := e.routed(completion(10, 4000))
	name := "engine-" + to[len(to)-1:]
	if at := g.daemon.Endpoints(t)[name]; at.Inflight != 1 || at.InflightTokens < 900 {
		t.Fatalf("reserved: %+v", at)
	}
	e.responseHeaders(false, to, ":status", "200", "content-type", "text/event-stream")
	e.responseBody(tokenEvent[:9], false)
	e.responseBody(tokenEvent[9:], false)
	testrun.Eventually(t, "the first token frees the prompt's tokens", func() bool {
		return g.daemon.Endpoints(t)[name].InflightTokens < 900
	})
	e.responseBody(tokenEvent+`data: {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 2,`+
		`"prompt_tokens_details": {"cached_tokens": 64}}}`+"\n\n", false)
	e.responseBody("data: [DONE]\n\n", true)
	e.ends()
	testrun.Eventually(t, "the end frees the request", func() bool { return g.daemon.Inflight(t) == 0 })
	counters := g.daemon.Counters(t)
	if counters["pickd_reported_prompt_tokens_total"] != 1000 || counters["pickd_reported_cached_tokens_total"] != 64 {
		t.Errorf("usage arrived as %v", counters)
	}
	if g.page.Reports(metrics.Done) != 1 {
		t.Error("it was counted otherwise")
	}
}

func TestAnAnswerInOnePieceIsReportedWithItsUsage(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	e.routed(completion(11, 400))
	e.responseHeaders(false, "", ":status", "200", "content-type", "application/json")
	e.responseBody(`{"choices": [{"text": "word"}], "usage": {"prompt_tokens": 77,`, false)
	e.responseBody(` "completion_tokens": 1}}`, false)
	e.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseTrailers{
		ResponseTrailers: &extprocv3.HttpTrailers{}}})
	if answer := e.receive(); answer.GetResponseTrailers() == nil {
		t.Fatalf("%v in place of an answer to trailers", answer)
	}
	e.ends()
	testrun.Eventually(t, "usage arrives", func() bool {
		return g.daemon.Counters(t)["pickd_reported_prompt_tokens_total"] == 77
	})
}

func TestTheReservationFollowsTheRequestToAFallback(t *testing.T) {
	g := startGateway(t, extproc.Options{Fallbacks: 3})
	e := g.exchange(t)
	to := strings.Split(e.routed(completion(12, 400)), ",")
	second := "engine-" + to[1][len(to[1])-1:]
	e.responseHeaders(false, to[1], ":status", "200", "content-type", "text/event-stream")
	testrun.Eventually(t, "the reservation moves", func() bool {
		endpoints := g.daemon.Endpoints(t)
		return endpoints[second].Inflight == 1 && g.daemon.Inflight(t) == 1
	})
	e.responseBody(tokenEvent+"data: [DONE]\n\n", true)
	e.ends()
	testrun.Eventually(t, "the request is over", func() bool { return g.daemon.Inflight(t) == 0 })
	if g.page.Reports(metrics.FellBack) != 1 || g.page.Reports(metrics.Done) != 1 {
		t.Error("it was counted otherwise")
	}
}

func TestHowAnAnswerEndsSaysWhatIsReported(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	engine := []string{"x-envoy-upstream-service-time", "3", "content-type", "application/json"}
	for _, c := range []struct {
		name   string
		status string
		more   []string
		report metrics.Report
	}{
		{"the proxy could not connect", "503", []string{"content-type", "text/plain"}, metrics.EndpointFailed},
		{"the engine broke", "500", engine, metrics.EndpointFailed},
		{"the engine is full", "503", engine, metrics.CallerGone},
		{"the caller's fault", "400", engine, metrics.CallerGone},
	} {
		before := g.page.Reports(c.report)
		e := g.exchange(t)
		e.routed(completion(13, 40))
		e.responseHeaders(false, "", append([]string{":status", c.status}, c.more...)...)
		e.responseBody(`{}`, true)
		e.ends()
		testrun.Eventually(t, c.name, func() bool {
			return g.page.Reports(c.report) == before+1 && g.daemon.Inflight(t) == 0
		})
	}
}

func TestACallerThatGoesAwayReleasesItsReservation(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	for _, after := range []string{"pick", "headers", "token"} {
		before := g.page.Reports(metrics.CallerGone)
		e := g.exchange(t)
		e.routed(completion(14, 400))
		if after != "pick" {
			e.responseHeaders(false, "", ":status", "200", "content-type", "text/event-stream")
		}
		if after == "token" {
			e.responseBody(tokenEvent, false)
		}
		e.cancel()
		testrun.Eventually(t, "away after "+after, func() bool {
			return g.page.Reports(metrics.CallerGone) == before+1 && g.daemon.Inflight(t) == 0
		})
	}
	testrun.Eventually(t, "no stream is left", func() bool { return g.page.Streams() == 0 })
}

func TestNoSeriesComesFromARequest(t *testing.T) {
	g := startGateway(t, extproc.Options{PickTimeout: 5 * time.Second})
	lines := func() int {
		page := httptest.NewRecorder()
		g.page.ServeHTTP(page, nil)
		return strings.Count(page.Body.String(), "\n")
	}
	before := lines()
	for at := range 500 {
		e := g.exchange(t)
		e.requestHeaders(false, "x-llm-d-inference-fairness-id", completion(at, 20))
		e.requestBody(`{"model": "`+strings.Repeat("x", at%200)+`"}`, true)
		e.receive()
		e.cancel()
	}
	if after := lines(); after != before {
		t.Errorf("%d lines of metrics before, %d after", before, after)
	}
}
