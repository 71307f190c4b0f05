// Package metrics counts what the gateway does and writes it as a page for Prometheus. The number of series is
// fixed: no label comes from a request.
package metrics

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// An Outcome says what became of a request at its pick.
type Outcome int

// The outcomes.
const (
	Picked Outcome = iota
	Degraded
	Shed
	NoEndpoint
	UnknownModel
	Invalid
	TooLarge
	TimedOut
	Cancelled
	Failed
	outcomes
)

var outcomeNames = [outcomes]string{"picked", "degraded", "shed", "no_endpoint", "unknown_model", "invalid",
	"too_large", "timed_out", "cancelled", "failed"}

// A Report says how a picked request ended.
type Report int

// The reports.
const (
	Done Report = iota
	EndpointFailed
	CallerGone
	FellBack
	NotReported
	reports
)

var reportNames = [reports]string{"done", "failed", "cancelled", "fallback", "lost"}

// Upper bounds of the histogram of pick durations, in microseconds.
var bounds = [...]int64{5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20000, 100000}

// A Page has the counters of one server. Its methods may be called by any goroutine.
type Page struct {
	More func(io.Writer) // writes what others count; may be nil

	requests [outcomes]atomic.Uint64
	reports  [reports]atomic.Uint64
	noPrompt atomic.Uint64
	streams  atomic.Int64

	buckets [len(bounds) + 1]atomic.Uint64
	nanos   atomic.Int64
}

// CountRequest counts what a pick came to.
func (p *Page) CountRequest(outcome Outcome) { p.requests[outcome].Add(1) }

// CountReport counts how a request ended, or moved to another endpoint.
func (p *Page) CountReport(report Report) { p.reports[report].Add(1) }

// CountNoPrompt counts a body of which no prompt could be read.
func (p *Page) CountNoPrompt() { p.noPrompt.Add(1) }

// StreamBegan and StreamEnded keep the number of streams.
func (p *Page) StreamBegan() { p.streams.Add(1) }

// StreamEnded is the other half of StreamBegan.
func (p *Page) StreamEnded() { p.streams.Add(-1) }

// Requests is how many requests had that outcome.
func (p *Page) Requests(outcome Outcome) uint64 { return p.requests[outcome].Load() }

// Reports is how many requests ended so.
func (p *Page) Reports(report Report) uint64 { return p.reports[report].Load() }

// Streams is how many there are now.
func (p *Page) Streams() int64 { return p.streams.Load() }

// ObservePick counts how long a pick took.
func (p *Page) ObservePick(took time.Duration) {
	bucket := 0
	for bucket < len(bounds) && took.Microseconds() > bounds[bucket] {
		bucket++
	}
	p.buckets[bucket].Add(1)
	p.nanos.Add(int64(took))
}

// ServeHTTP writes the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	p.write(w)
}

func (p *Page) write(w io.Writer) {
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	head("pickd_extproc_requests_total", "counter", "Requests by what their pick came to.")
	for at := range p.requests {
		fmt.Fprintf(w, "pickd_extproc_requests_total{outcome=%q} %d\n", outcomeNames[at], p.requests[at].Load())
	}
	head("pickd_extproc_reports_total", "counter", "Picked requests by how they ended; fallback: another endpoint served.")
	for at := range p.reports {
		fmt.Fprintf(w, "pickd_extproc_reports_total{kind=%q} %d\n", reportNames[at], p.reports[at].Load())
	}
	head("pickd_extproc_bodies_without_prompt_total", "counter", "Bodies of which no prompt could be read: picked by load.")
	fmt.Fprintf(w, "pickd_extproc_bodies_without_prompt_total %d\n", p.noPrompt.Load())
	head("pickd_extproc_streams", "gauge", "Requests that the proxy has under way.")
	fmt.Fprintf(w, "pickd_extproc_streams %d\n", p.streams.Load())
	head("pickd_extproc_pick_seconds", "histogram", "From the end of a body to its pick.")
	total := uint64(0)
	for at := range p.buckets {
		total += p.buckets[at].Load()
		bound := "+Inf"
		if at < len(bounds) {
			bound = fmt.Sprint(float64(bounds[at]) / 1e6)
		}
		fmt.Fprintf(w, "pickd_extproc_pick_seconds_bucket{le=%q} %d\n", bound, total)
	}
	fmt.Fprintf(w, "pickd_extproc_pick_seconds_sum %g\npickd_extproc_pick_seconds_count %d\n",
		time.Duration(p.nanos.Load()).Seconds(), total)
	if p.More != nil {
		p.More(w)
	}
}
