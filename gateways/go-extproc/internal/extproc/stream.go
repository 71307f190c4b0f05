// One request through the server, message by message. How messages look stands in messages.go.

package extproc

import (
	"errors"
	"io"
	"strconv"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/body"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
)

// A stream is one request on its way through the proxy, and its answer on the way back.
type stream struct {
	server     *Server
	connection extprocv3.ExternalProcessor_ProcessServer
	reader     body.Reader

	requestMode  filterv3.ProcessingMode_BodySendMode
	responseMode filterv3.ProcessingMode_BodySendMode
	request      pickd.Request // what headers and metadata told
	begun        bool          // the request's headers came
	readable     bool          // the body was begun
	held         pieces        // of the body, which the proxy gets back after the pick

	pick       pickd.Pick
	picked     bool
	refused    bool      // an answer of the gateway's own was sent
	answering  bool      // the answer was begun
	firstToken bool      // and its first token reported
	reported   bool      // the end was reported
	told       time.Time // when the last report went out that the answer goes on
	status     int
}

// run answers the proxy's messages until it closes the stream.
func (s *stream) run() error {
	for {
		message, err := s.connection.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if message.GetObservabilityMode() {
			continue // who only watches wants no answers, and there is nothing to pick for
		}
		if err := s.handle(message); err != nil {
			return err
		}
		if s.refused {
			return nil // the proxy sends nothing more of this request
		}
	}
}

func (s *stream) handle(message *request) error {
	switch part := message.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return s.requestHeaders(message, part.RequestHeaders)
	case *extprocv3.ProcessingRequest_RequestBody:
		return s.requestBody(part.RequestBody)
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return s.requestTrailers()
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return s.responseHeaders(message, part.ResponseHeaders)
	case *extprocv3.ProcessingRequest_ResponseBody:
		return s.responseBody(part.ResponseBody)
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		s.endAnswer()
		return s.connection.Send(responseTrailers())
	}
	return status.Error(codes.InvalidArgument, "a message without a part of a request or an answer")
}

// ---- The request ---------------------------------------------------------------------------------

func (s *stream) requestHeaders(message *request, headers *extprocv3.HttpHeaders) error {
	if s.begun { // a second pick would forget the first one's reservation
		return status.Error(codes.InvalidArgument, "request headers for a second time in one stream")
	}
	s.begun = true
	s.requestMode = message.GetProtocolConfig().GetRequestBodyMode()
	s.responseMode = message.GetProtocolConfig().GetResponseBodyMode()
	if message.GetProtocolConfig() == nil { // of older proxies: the protocol knows one mode
		s.requestMode = filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
		s.responseMode = filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
	}
	head := headOf(headers)
	options := &s.server.options
	s.request = pickd.Request{
		Subset:     s.server.subsetOf(message.GetMetadataContext()),
		SLOTTFT:    head.milliseconds(sloTTFTHeaders...),
		SLOITL:     head.milliseconds(sloITLHeaders...),
		Priority:   options.Objectives[head.text(objectiveHeaders...)],
		Attributes: head.attributes(options.Attributes),
		// More than go into the destination: the proxy may have been served by one of them.
		EndpointsMax: endpointsMax,
	}
	s.readable = s.reader.Begin(head.text(":path"), head) == nil
	if headers.GetEndOfStream() || s.requestMode != filterv3.ProcessingMode_FULL_DUPLEX_STREAMED &&
		s.requestMode != filterv3.ProcessingMode_BUFFERED {
		// No body comes, or none before this is answered.
		if !headers.GetEndOfStream() {
			s.server.warnOfMode(s.requestMode)
		}
		if s.readable {
			_ = s.reader.End()
		}
		return s.route(requestHeaders)
	}
	if s.requestMode == filterv3.ProcessingMode_BUFFERED {
		return s.connection.Send(requestHeaders(nil, nil))
	}
	return nil // answered when the body is complete
}

func (s *stream) requestBody(part *extprocv3.HttpBody) error {
	if s.picked {
		// A body after a pick without it: passed on as it is.
		if s.requestMode == filterv3.ProcessingMode_FULL_DUPLEX_STREAMED {
			return s.connection.Send(requestBody(streamed(part.GetBody(), part.GetEndOfStream()), nil))
		}
		return s.connection.Send(requestBody(nil, nil))
	}
	if s.readable {
		switch err := s.reader.Add(part.GetBody()); {
		case errors.Is(err, body.ErrTooLarge):
			s.server.page.CountRequest(metrics.TooLarge)
			return s.refuse(refused(413, "", "the request's body is over the gateway's limit"))
		case err != nil:
			s.readable = false
		}
	}
	if s.requestMode == filterv3.ProcessingMode_BUFFERED {
		// The whole body, even where it is not the end: trailers follow then, when this is answered.
		s.endBody()
		return s.route(requestBody)
	}
	s.held.add(part.GetBody(), part.GetEndOfStream())
	if !part.GetEndOfStream() {
		return nil
	}
	s.endBody()
	return s.routeHeld(true)
}

// requestTrailers ends a body that did not end itself.
func (s *stream) requestTrailers() error {
	if !s.picked {
		if s.requestMode == filterv3.ProcessingMode_BUFFERED {
			return status.Error(codes.InvalidArgument, "trailers before the buffered body")
		}
		s.endBody()
		if err := s.routeHeld(false); err != nil || s.refused {
			return err
		}
	}
	return s.connection.Send(requestTrailers())
}

func (s *stream) endBody() {
	if s.readable && s.reader.End() != nil {
		s.server.page.CountNoPrompt()
	}
}

// routeHeld answers the headers and gives the body back.
func (s *stream) routeHeld(end bool) error {
	if err := s.route(requestHeaders); err != nil || s.refused {
		return err
	}
	for at, piece := range s.held {
		last := end && at == len(s.held)-1
		if err := s.connection.Send(requestBody(streamed(piece, last), nil)); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

// route picks and puts the destination into an answer of the given kind.
func (s *stream) route(kind func(*common, *structpb.Struct) *response) error {
	if s.readable {
		if err := s.reader.Request(&s.request); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	pick, refusal := s.server.pick(s.connection.Context(), s.request)
	s.request = pickd.Request{} // its strings may be the reader's
	if refusal != nil {
		return s.refuse(refusal)
	}
	s.pick, s.picked = pick, true
	return s.connection.Send(kind(routed(&pick, s.server.options.Fallbacks)))
}

func (s *stream) refuse(with *response) error {
	s.refused = true
	s.held = nil
	return s.connection.Send(with)
}

// ---- The answer ----------------------------------------------------------------------------------

func (s *stream) responseHeaders(message *request, headers *extprocv3.HttpHeaders) error {
	if err := s.connection.Send(responseHeaders()); err != nil {
		return err
	}
	if !s.picked {
		return nil
	}
	head := headOf(headers)
	s.status, _ = strconv.Atoi(head.text(":status"))
	s.moveTo(servedOf(message))
	_, fromEngine := head.get(upstreamTimeHeader)
	if s.status >= 502 && s.status <= 504 && !fromEngine {
		s.end(pickd.Report{Kind: pickd.Failed}) // the proxy's own word: nobody answered there
		return nil
	}
	s.answering = s.reader.BeginAnswer(s.status, head) == nil
	s.told = time.Now()
	if headers.GetEndOfStream() {
		s.endAnswer()
	}
	return nil
}

// moveTo makes the reservation follow the request when the proxy went on to another endpoint. One that the pick did
// not list may still be the daemon's, where it is the proxy's word and no mere address of a connection.
func (s *stream) moveTo(served string, proxysWord bool) {
	if served == "" || served == hostPort(s.pick.Address()) {
		return
	}
	for _, endpoint := range s.pick.Endpoints[1:] {
		if hostPort(endpoint.Address) == served {
			s.server.report(pickd.Report{Ticket: s.pick.Ticket, Kind: pickd.Fallback, Endpoint: endpoint.Address})
			return
		}
	}
	if proxysWord && len(served) <= subsetBytesMax {
		s.server.report(pickd.Report{Ticket: s.pick.Ticket, Kind: pickd.Fallback, Endpoint: served})
	}
}

func (s *stream) responseBody(part *extprocv3.HttpBody) error {
	var with *common
	if s.responseMode == filterv3.ProcessingMode_FULL_DUPLEX_STREAMED {
		with = streamed(part.GetBody(), part.GetEndOfStream())
	}
	// The caller gets its tokens before they are counted.
	if err := s.connection.Send(responseBody(with)); err != nil {
		return err
	}
	if s.answering && !s.reported {
		happened := s.reader.AddAnswer(part.GetBody())
		if happened&body.FirstToken != 0 && !s.firstToken {
			s.firstToken, s.told = true, time.Now()
			s.server.report(pickd.Report{Ticket: s.pick.Ticket, Kind: pickd.FirstToken})
		}
		s.goesOn()
	}
	if part.GetEndOfStream() {
		s.endAnswer()
	}
	return nil
}

// goesOn reports now and then that the answer flows, or the daemon would take the reservation for one that was lost.
func (s *stream) goesOn() {
	if time.Since(s.told) < s.server.options.ProgressEvery {
		return
	}
	s.told = time.Now()
	report := pickd.Report{}
	_ = s.reader.Report(&report) // one that cannot be read goes on, too
	report.Ticket, report.Kind = s.pick.Ticket, pickd.Progress
	s.server.report(report)
}

// endAnswer reports what the whole answer tells.
func (s *stream) endAnswer() {
	if !s.answering || s.reported {
		return
	}
	s.reader.EndAnswer()
	report := pickd.Report{Kind: pickd.Cancelled}
	if err := s.reader.Report(&report); err != nil {
		report = pickd.Report{Kind: pickd.Cancelled}
	}
	s.end(report)
}

func (s *stream) end(report pickd.Report) {
	if s.reported {
		return
	}
	s.reported = true
	report.Ticket = s.pick.Ticket
	s.server.report(report)
}

// finish comes when the stream is over. Where no answer ended before that, the caller went away or the
// connection to the engine broke, and the proxy does not say which: nothing is said of the endpoint. A proxy
// that keeps the answer's body to itself has seen it through when it closes the stream.
func (s *stream) finish() {
	if !s.picked || s.reported {
		return
	}
	if s.answering && s.responseMode == filterv3.ProcessingMode_NONE && s.connection.Context().Err() == nil &&
		s.status < 400 {
		s.end(pickd.Report{Kind: pickd.Done})
		return
	}
	s.end(pickd.Report{Kind: pickd.Cancelled})
}
