// The server behind a real Envoy, before engines: what callers see.

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/testrun"
)

// An edge is a real Envoy between callers and engines, with two servers under test: without fallbacks, and
// with three.
type edge struct {
	daemon              *testrun.Daemon
	plain, withFallback string // URLs
	servers             [2]*process
}

// startEdge starts Envoy from ENVOY, with endpoints in the cluster that knows them.
func startEdge(t *testing.T, daemon *testrun.Daemon, endpoints ...string) *edge {
	t.Helper()
	envoy := os.Getenv("ENVOY")
	if envoy == "" {
		t.Skip("ENVOY does not name an Envoy; tests/go_envoy_test.py gets one")
	}
	e := &edge{daemon: daemon}
	for at, fallbacks := range []string{"0", "3"} {
		e.servers[at] = start(t, build(t), "--socket", daemon.Socket, "--fallbacks", fallbacks)
	}
	text, err := os.ReadFile("testdata/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	ports := map[string]int{"9901": testrun.FreePort(t), "10000": testrun.FreePort(t), "10001": testrun.FreePort(t)}
	for from, to := range ports {
		config = strings.ReplaceAll(config, "port_value: "+from, fmt.Sprint("port_value: ", to))
	}
	for at, from := range []string{"9002", "9012"} {
		_, port, _ := strings.Cut(e.servers[at].grpc, ":")
		config = strings.ReplaceAll(config, "port_value: "+from, "port_value: "+port)
	}
	line := regexp.MustCompile(`(?m)^ *- .*port_value: 8000.* # engine$`).FindString(config)
	var lines []string
	for _, endpoint := range endpoints {
		_, port, _ := strings.Cut(endpoint, ":")
		lines = append(lines, strings.Replace(line, "8000", port, 1))
	}
	config = strings.Replace(config, line, strings.Join(lines, "\n"), 1)
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	testrun.Start(t, envoy, "-c", path, "--log-level", "warning", "--use-dynamic-base-id", "--concurrency", "1")
	ready := fmt.Sprintf("http://127.0.0.1:%d/ready", ports["9901"])
	testrun.Eventually(t, "Envoy is ready", func() bool {
		answer, err := http.Get(ready)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	e.plain = fmt.Sprintf("http://127.0.0.1:%d/v1/completions", ports["10000"])
	e.withFallback = fmt.Sprintf("http://127.0.0.1:%d/v1/completions", ports["10001"])
	return e
}

func post(t *testing.T, ctx context.Context, url, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func minute(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// completion asks for so many tokens of an answer.
func completion(model string, seed, promptBytes, tokens int, stream bool) string {
	var prompt strings.Builder
	for at := 0; prompt.Len() < promptBytes; at++ {
		fmt.Fprintf(&prompt, "%d of prompt %d. ", at, seed)
	}
	return fmt.Sprintf(`{"model": %q, "prompt": %q, "max_tokens": %d, "ignore_eos": true, "stream": %t,
		"stream_options": {"include_usage": %t}}`, model, prompt.String(), tokens, stream, stream)
}

func whole(t *testing.T, answer *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// figure of a server's page of metrics.
func (e *edge) figure(t *testing.T, server int, series string) float64 {
	t.Helper()
	answer, err := http.Get("http://" + e.servers[server].metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for _, line := range strings.Split(whole(t, answer), "\n") {
		if value, found := strings.CutPrefix(line, series+" "); found {
			number, _ := strconv.ParseFloat(value, 64)
			return number
		}
	}
	t.Fatalf("no %s", series)
	return 0
}

func (e *edge) settles(t *testing.T) {
	t.Helper()
	testrun.Eventually(t, "nothing is under way", func() bool { return e.daemon.Inflight(t) == 0 })
}

func enginesYAML(model string, addresses ...string) string {
	text := "scrape: {enabled: false}\nendpoints:\n"
	for at, address := range addresses {
		text += fmt.Sprintf("  - {name: engine-%d, address: %q, models: [%s]}\n", at, address, model)
	}
	return text
}

func TestEnvoySendsRequestsWherePickdSays(t *testing.T) {
	a, b := testrun.StartEngine(t), testrun.StartEngine(t)
	e := startEdge(t, testrun.StartDaemon(t, enginesYAML("demo", a.Address, b.Address)), a.Address, b.Address)
	for _, url := range []string{e.plain, e.withFallback} {
		for _, stream := range []bool{true, false} {
			answer := post(t, minute(t), url, completion("demo", 1, 20_000, 20, stream))
			text := whole(t, answer)
			if answer.StatusCode != 200 || stream != strings.HasSuffix(text, "data: [DONE]\n\n") ||
				!strings.Contains(text, `"completion_tokens"`) {
				t.Fatalf("%d: %s", answer.StatusCode, text)
			}
			e.settles(t)
		}
	}
	counters := e.daemon.Counters(t)
	// The second to fourth find nearly all of 5,000 tokens where the first was.
	if counters["pickd_reported_prompt_tokens_total"] < 4*5000 || counters["pickd_reported_cached_tokens_total"] < 3*4800 {
		t.Errorf("reported %v prompt tokens, %v cached", counters["pickd_reported_prompt_tokens_total"],
			counters["pickd_reported_cached_tokens_total"])
	}
	for server := range e.servers {
		if done := e.figure(t, server, `pickd_extproc_reports_total{kind="done"}`); done != 2 {
			t.Errorf("server %d reported %v as done", server, done)
		}
	}
}

func TestEnvoyPassesLongBodiesAndOnesThatAreNoJSON(t *testing.T) {
	engine := testrun.StartEngine(t, "--time-factor", "100", "--blocks", "100000")
	e := startEdge(t, testrun.StartDaemon(t, enginesYAML("demo", engine.Address)), engine.Address)
	answer := post(t, minute(t), e.plain, completion("demo", 2, 400_000, 2, false))
	if text := whole(t, answer); answer.StatusCode != 200 || !strings.Contains(text, `"usage"`) {
		t.Errorf("%d: %.200s", answer.StatusCode, text)
	}
	answer = post(t, minute(t), e.plain, `{"model": "demo", "prompt": `)
	if text := whole(t, answer); answer.StatusCode != 400 {
		t.Errorf("%d in place of the engine's 400: %.200s", answer.StatusCode, text)
	}
	e.settles(t)
}

func TestEnvoyRetriesOnAFallbackWhenTheFirstIsDead(t *testing.T) {
	engine := testrun.StartEngine(t)
	dead := fmt.Sprintf("127.0.0.1:%d", testrun.FreePort(t))
	e := startEdge(t, testrun.StartDaemon(t, enginesYAML("demo", dead, engine.Address)), dead, engine.Address)
	const fallbacks = `pickd_extproc_reports_total{kind="fallback"}`
	for at := 0; at < 50 && e.figure(t, 1, fallbacks) == 0; at++ { // each goes to the dead one first by chance
		answer := post(t, minute(t), e.withFallback, completion("demo", at, 400, 3, true))
		if text := whole(t, answer); answer.StatusCode != 200 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Fatalf("%d: %s", answer.StatusCode, text)
		}
		e.settles(t)
	}
	if e.figure(t, 1, fallbacks) == 0 {
		t.Fatal("no request was served by a fallback")
	}
	if state := e.daemon.Endpoints(t)["engine-0"].State; state == "ready" {
		t.Errorf("the dead one is still %s", state)
	}
}

func TestAnEngineKilledWhileItStreamsLeavesNothingReserved(t *testing.T) {
	slow := testrun.StartEngine(t, "--step-seconds", "0.05")
	e := startEdge(t, testrun.StartDaemon(t, enginesYAML("demo", slow.Address)), slow.Address)
	answer := post(t, minute(t), e.plain, completion("demo", 4, 400, 10_000, true))
	lines := bufio.NewReader(answer.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("%q, %v", line, err)
	}
	slow.Kill()
	rest, err := io.ReadAll(lines)
	if err == nil || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the caller does not see that the answer broke off: %v", err)
	}
	e.settles(t)
	// Nobody listens there any more: Envoy says so, and pickd hears of it.
	answer = post(t, minute(t), e.plain, completion("demo", 5, 400, 1, true))
	if answer.StatusCode != 503 {
		t.Errorf("%d: %s", answer.StatusCode, whole(t, answer))
	}
	testrun.Eventually(t, "the endpoint is suspect", func() bool {
		return e.daemon.Endpoints(t)["engine-0"].State != "ready"
	})
	e.settles(t)
}

func TestACallerThatLeavesEnvoyReleasesItsReservation(t *testing.T) {
	slow := testrun.StartEngine(t, "--step-seconds", "0.05")
	e := startEdge(t, testrun.StartDaemon(t, enginesYAML("demo", slow.Address)), slow.Address)
	ctx, cancel := context.WithCancel(minute(t))
	answer := post(t, ctx, e.plain, completion("demo", 6, 400, 10_000, true))
	if _, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if inflight := e.daemon.Inflight(t); inflight != 1 {
		t.Errorf("%d under way", inflight)
	}
	cancel()
	e.settles(t)
	if state := e.daemon.Endpoints(t)["engine-0"].State; state != "ready" {
		t.Errorf("the engine is %s for what its caller did", state)
	}
}

func TestRefusalsReachTheCallerAs404And503And429(t *testing.T) {
	e := startEdge(t, testrun.StartDaemon(t, enginesYAML("demo", "127.0.0.1:9")), "127.0.0.1:9")
	expect := func(e *edge, model string, status int, reason string) {
		t.Helper()
		answer := post(t, minute(t), e.plain, completion(model, 7, 100, 1, true))
		text := whole(t, answer)
		if answer.StatusCode != status || !strings.Contains(text, fmt.Sprintf(`"code":%d`, status)) ||
			answer.Header.Get("x-llm-d-request-dropped-reason") != reason ||
			answer.Header.Get("content-type") != "application/json" {
			t.Errorf("%d, %v: %s", answer.StatusCode, answer.Header, text)
		}
	}
	expect(e, "unknown", 404, "")
	client, err := pickd.Open(pickd.Options{Socket: e.daemon.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.DrainEndpoint(minute(t), "engine-0", true); err != nil {
		t.Fatal(err)
	}
	expect(e, "demo", 503, "rejected-no-endpoints")

	shedding := testrun.StartDaemon(t, `scheduling:
  apiVersion: llm-d.ai/v1alpha1
  kind: EndpointPickerConfig
  plugins:
    - {type: label-selector-filter, parameters: {matchLabels: {nobody: has-it}}}
    - {type: max-score-picker}
  schedulingProfiles:
    - {name: default, plugins: [{pluginRef: label-selector-filter}, {pluginRef: max-score-picker}]}`,
		enginesYAML("demo", "127.0.0.1:9"))
	expect(startEdge(t, shedding, "127.0.0.1:9"), "demo", 429, "rejected-saturated")
}
