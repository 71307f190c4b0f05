// Field case 106: what callers write becomes no label, so the metrics page cannot be made to grow.

package extproc_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
)

func TestModelNamesOfCallersDoNotMakeTheMetricsPageLonger(t *testing.T) {
	g := startGateway(t, extproc.Options{})
	page := func() string {
		answer := httptest.NewRecorder()
		g.page.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	before := strings.Count(page(), "\n")
	for at := range 100 {
		e := g.exchange(t)
		e.requestHeaders(false)
		e.requestBody(fmt.Sprintf(`{"model": "caller's-%d", "prompt": "Hello"}`, at), true)
		if status := e.receive().GetImmediateResponse().GetStatus().GetCode(); status != 404 {
			t.Fatalf("a model that nobody serves gives %d", status)
		}
	}
	if count := g.page.Requests(metrics.UnknownModel); count != 100 {
		t.Errorf("%d of 100 requests were counted", count)
	}
	after := page()
	if lines := strings.Count(after, "\n"); lines != before || strings.Contains(after, "caller's") {
		t.Errorf("%d lines, which were %d:\n%s", lines, before, after)
	}
}
