// Who served, and that a long answer keeps its reservation.

package extproc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
	"github.com/pickd/pickd/gateways/go-extproc/internal/testrun"
)

func TestTheReservationFollowsWhoServedThoughTheDestinationWasOne(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	e := g.exchange(t)
	to := e.routed(completion(24, 400))
	served := 9000
	if strings.HasSuffix(to, "9000") {
		served = 9001
	}
	e.responseHeaders(false, fmt.Sprintf("127.0.0.1:%d", served), ":status", "200", "content-type", "text/event-stream")
	testrun.Eventually(t, "the reservation moves", func() bool {
		return g.daemon.Endpoints(t)[fmt.Sprintf("engine-%d", served-9000)].Inflight == 1 && g.daemon.Inflight(t) == 1
	})
	e.responseBody(tokenEvent+"data: [DONE]\n\n", true)
	e.ends()
	testrun.Eventually(t, "the request is over", func() bool { return g.daemon.Inflight(t) == 0 })
}

func TestTheReservationFollowsToAnEndpointThatThePickDidNotList(t *testing.T) {
	const others = 20
	var yaml strings.Builder
	yaml.WriteString("scrape: {enabled: false}\nendpoints:\n")
	for at := range others {
		fmt.Fprintf(&yaml, "  - {name: engine-%d, address: \"127.0.0.1:%d\", models: [m]}\n", at, 9000+at)
	}
	// The request is allowed one endpoint, so that it lists no other.
	g := startGatewayOf(t, extproc.Options{}, yaml.String())
	e := g.exchange(t)
	e.hint = hintOf(t, "127.0.0.1:9003")
	e.routed(completion(25, 400))
	e.responseHeaders(false, "127.0.0.1:9017", ":status", "200", "content-type", "text/event-stream")
	testrun.Eventually(t, "the reservation moves", func() bool {
		return g.daemon.Endpoints(t)["engine-17"].Inflight == 1 && g.daemon.Inflight(t) == 1
	})
	e.responseBody(tokenEvent+"data: [DONE]\n\n", true)
	e.ends()
	testrun.Eventually(t, "the request is over", func() bool { return g.daemon.Inflight(t) == 0 })
}

func TestWhoServedAndIsUnknownLeavesTheReservationWhereItIs(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	for _, served := range []string{"10.0.0.1:1", "garbage,,", strings.Repeat("x", 1000)} {
		e := g.exchange(t)
		name := "engine-" + e.routed(completion(26, 400))[len("127.0.0.1:900"):]
		e.responseHeaders(false, served, ":status", "200", "content-type", "text/event-stream")
		e.responseBody(tokenEvent, false)
		testrun.Eventually(t, "the first token came", func() bool { return g.daemon.Endpoints(t)[name].InflightTokens < 400 })
		if endpoints := g.daemon.Endpoints(t); endpoints[name].Inflight != 1 || endpoints[name].State == "suspect" {
			t.Errorf("%.20q served: %+v", served, endpoints[name])
		}
		e.responseBody("data: [DONE]\n\n", true)
		e.ends()
		testrun.Eventually(t, "the request is over", func() bool { return g.daemon.Inflight(t) == 0 })
	}
}

func TestAnAnswerThatFlowsTellsSo(t *testing.T) {
	g := startGateway(t, extproc.Options{ProgressEvery: time.Nanosecond})
	e := g.exchange(t)
	e.routed(completion(27, 400))
	e.responseHeaders(false, "", ":status", "200", "content-type", "text/event-stream")
	const pieces = 10
	for range pieces {
		e.responseBody(tokenEvent, false)
	}
	testrun.Eventually(t, "the first token and progress after it are reported", func() bool {
		return g.daemon.Counters(t)["pickd_reports_total"] >= pieces
	})
	if g.daemon.Inflight(t) != 1 {
		t.Error("it was ended")
	}
	e.responseBody("data: [DONE]\n\n", true)
	e.ends()
	testrun.Eventually(t, "the request is over", func() bool {
		return g.daemon.Inflight(t) == 0 && g.page.Reports(metrics.Done) == 1
	})
}

func TestAnAnswerTellsNotMoreOftenThanAsked(t *testing.T) {
	g := startGateway(t, extproc.Options{ProgressEvery: time.Hour})
	e := g.exchange(t)
	e.routed(completion(28, 400))
	e.responseHeaders(false, "", ":status", "200", "content-type", "text/event-stream")
	for range 10 {
		e.responseBody(tokenEvent, false)
	}
	e.responseBody("data: [DONE]\n\n", true)
	e.ends()
	testrun.Eventually(t, "the request is over", func() bool { return g.daemon.Inflight(t) == 0 })
	if told := g.daemon.Counters(t)["pickd_reports_total"]; told != 2 {
		t.Errorf("%v reports in place of the first token and the end", told)
	}
}
