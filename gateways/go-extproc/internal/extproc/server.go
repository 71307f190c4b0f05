// Package extproc is the Endpoint Picker Protocol on Envoy's external processing service: it reads requests as
// they pass, lets pickd pick, tells the proxy where to, and reports what becomes of the answer.
package extproc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/body"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
)

// Options of a [Server].
type Options struct {
	// PickTimeout is how long a pick may take. It must be shorter than the proxy's message_timeout: shortly
	// before its end the library answers in the daemon's place.
	PickTimeout time.Duration
	// Fallbacks is how many endpoints follow the winner in the destination, at most 7.
	Fallbacks int
	// Objectives gives a priority to each name of x-llm-d-inference-objective; unknown names have 0.
	Objectives map[string]int
	// ProgressEvery is how often a streamed answer tells pickd that it goes on, which keeps its reservation; less
	// than reservations.lease of the daemon. 0: 5 s.
	ProgressEvery time.Duration
	// Attributes names more request headers that plugins of the daemon want to see.
	Attributes []string
}

// A Server serves the external processing streams of proxies.
type Server struct {
	extprocv3.UnimplementedExternalProcessorServer
	client  *pickd.Client
	bodies  body.New
	page    *metrics.Page
	options Options

	// What is said once in a process, as each request would say it again.
	modeTold, hintCut sync.Once
}

const progressDefault = 5 * time.Second

// NewServer makes a server. It does not own the client.
func NewServer(client *pickd.Client, bodies body.New, page *metrics.Page, options Options) *Server {
	if options.ProgressEvery == 0 {
		options.ProgressEvery = progressDefault
	}
	return &Server{client: client, bodies: bodies, page: page, options: options}
}

// Process serves one request of the proxy.
func (s *Server) Process(connection extprocv3.ExternalProcessor_ProcessServer) error {
	s.page.StreamBegan()
	defer s.page.StreamEnded()
	reader, err := s.bodies()
	if err != nil {
		return err
	}
	defer reader.Release()
	st := stream{server: s, connection: connection, reader: reader}
	defer st.finish()
	return st.run()
}

// warnOfMode says that bodies come too late, or not at all, in this mode of the filter.
func (s *Server) warnOfMode(mode filterv3.ProcessingMode_BodySendMode) {
	s.modeTold.Do(func() {
		slog.Warn("requests are picked without their model and prompt: the filter's request_body_mode keeps bodies back; "+
			"FULL_DUPLEX_STREAMED is wanted, or BUFFERED", "request_body_mode", mode.String())
	})
}

// pick picks, counts, and gives an answer of the gateway's own when there is no endpoint.
func (s *Server) pick(ctx context.Context, request pickd.Request) (pickd.Pick, *response) {
	ctx, cancel := context.WithTimeout(ctx, s.options.PickTimeout)
	defer cancel()
	from := time.Now()
	pick, err := s.pickInSubset(ctx, request)
	s.page.ObservePick(time.Since(from))
	if err == nil {
		if pick.Degraded {
			s.page.CountRequest(metrics.Degraded)
		} else {
			s.page.CountRequest(metrics.Picked)
		}
		return pick, nil
	}
	outcome, reason := outcomeOf(err)
	s.page.CountRequest(outcome)
	if outcome == metrics.Failed {
		slog.Error("a pick failed", "error", err)
	}
	status := pickd.HTTPStatus(err)
	if status == http.StatusGatewayTimeout {
		status = http.StatusServiceUnavailable // no engine was asked yet
	}
	return pick, refused(status, reason, err.Error())
}

func outcomeOf(err error) (metrics.Outcome, string) {
	switch {
	case errors.Is(err, pickd.ErrShed), errors.Is(err, pickd.ErrLimited):
		return metrics.Shed, reasonSaturated
	case errors.Is(err, pickd.ErrNoEndpoint), errors.Is(err, pickd.ErrNotConnected):
		return metrics.NoEndpoint, reasonNoEndpoints
	case errors.Is(err, pickd.ErrNotFound):
		return metrics.UnknownModel, ""
	case errors.Is(err, pickd.ErrInvalid), errors.Is(err, pickd.ErrTooBig):
		return metrics.Invalid, ""
	case errors.Is(err, context.DeadlineExceeded):
		return metrics.TimedOut, reasonExpired
	case errors.Is(err, context.Canceled):
		return metrics.Cancelled, ""
	case errors.Is(err, pickd.ErrClosed):
		return metrics.Failed, reasonShuttingDown
	}
	return metrics.Failed, ""
}

// report hands a report over. A ticket outlives the request's stream, so its context is not asked.
func (s *Server) report(report pickd.Report) {
	kinds := map[pickd.ReportKind]metrics.Report{pickd.Done: metrics.Done, pickd.Failed: metrics.EndpointFailed,
		pickd.Cancelled: metrics.CallerGone, pickd.Fallback: metrics.FellBack}
	ctx, cancel := context.WithTimeout(context.Background(), s.options.PickTimeout)
	defer cancel()
	if err := s.client.Report(ctx, report); err != nil {
		s.page.CountReport(metrics.NotReported)
		return
	}
	if kind, counted := kinds[report.Kind]; counted {
		s.page.CountReport(kind)
	}
}
