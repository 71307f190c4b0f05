// Making the proxy's messages: routes, header changes, immediate answers. Pure.

package extproc

import (
	"encoding/json"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	pickd "github.com/pickd/pickd/bindings/go"
)

// Names for what the generated package calls at length.
type (
	request   = extprocv3.ProcessingRequest
	response  = extprocv3.ProcessingResponse
	headersOf = extprocv3.HeadersResponse
	bodyOf    = extprocv3.BodyResponse
	common    = extprocv3.CommonResponse
)

// destinations is the list that the proxy tries in order: the winner and at most so many fallbacks.
func destinations(pick *pickd.Pick, fallbacks int) string {
	var list strings.Builder
	for at := 0; at < len(pick.Endpoints) && at <= fallbacks; at++ {
		if at > 0 {
			list.WriteByte(',')
		}
		list.WriteString(hostPort(pick.Endpoints[at].Address))
	}
	return list.String()
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header: &corev3.HeaderValue{Key: name, RawValue: []byte(value)},
		// What a client sent under this name must not survive.
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// routed says where a request goes, in the header and in metadata, which the protocol wants to agree. The route is
// chosen anew: it may depend on the header.
func routed(pick *pickd.Pick, fallbacks int) (*common, *structpb.Struct) {
	list := destinations(pick, fallbacks)
	mutation := &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{header(destinationKey, list)}}
	stages := []struct {
		name     string
		endpoint *pickd.Endpoint
	}{{prefillHeader, pick.Prefill}, {encodeHeader, pick.Encode}}
	for _, stage := range stages {
		if stage.endpoint != nil {
			mutation.SetHeaders = append(mutation.SetHeaders, header(stage.name, hostPort(stage.endpoint.Address)))
		} else {
			mutation.RemoveHeaders = append(mutation.RemoveHeaders, stage.name)
		}
	}
	mutation.RemoveHeaders = append(mutation.RemoveHeaders, pickersHeaders...)
	value := structpb.NewStringValue(list)
	metadata := &structpb.Struct{Fields: map[string]*structpb.Value{
		lbNamespace: structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{destinationKey: value}}),
	}}
	return &common{HeaderMutation: mutation, ClearRouteCache: true}, metadata
}

func requestHeaders(with *common, metadata *structpb.Struct) *response {
	return &response{
		Response:        &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &headersOf{Response: with}},
		DynamicMetadata: metadata,
	}
}

func requestBody(with *common, metadata *structpb.Struct) *response {
	return &response{
		Response:        &extprocv3.ProcessingResponse_RequestBody{RequestBody: &bodyOf{Response: with}},
		DynamicMetadata: metadata,
	}
}

func responseBody(with *common) *response {
	return &response{
		Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: &bodyOf{Response: with}},
	}
}

func responseHeaders() *response {
	return &response{
		Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &headersOf{}},
	}
}

func requestTrailers() *response {
	return &response{
		Response: &extprocv3.ProcessingResponse_RequestTrailers{RequestTrailers: &extprocv3.TrailersResponse{}},
	}
}

func responseTrailers() *response {
	return &response{
		Response: &extprocv3.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extprocv3.TrailersResponse{}},
	}
}

// streamed passes a piece of a body on in full-duplex mode.
func streamed(piece []byte, end bool) *common {
	return &common{BodyMutation: &extprocv3.BodyMutation{
		Mutation: &extprocv3.BodyMutation_StreamedResponse{
			StreamedResponse: &extprocv3.StreamedBodyResponse{Body: piece, EndOfStream: end},
		},
	}}
}

// refused ends the request with an answer of the gateway's own, in the form that the engines' APIs have.
func refused(status int, reason, why string) *response {
	var told struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    int    `json:"code"`
		} `json:"error"`
	}
	told.Error.Message, told.Error.Type, told.Error.Code = why, errorType(status), status
	text, _ := json.Marshal(&told) // strings and numbers: it cannot fail
	headers := []*corev3.HeaderValueOption{header("content-type", "application/json")}
	if reason != "" {
		headers = append(headers, header(droppedReasonHeader, reason))
	}
	return &response{Response: &extprocv3.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(status)},
			Headers: &extprocv3.HeaderMutation{SetHeaders: headers},
			Body:    text,
			Details: "pickd_" + strconv.Itoa(status),
		},
	}}
}

func errorType(status int) string {
	switch status {
	case 404:
		return "NotFoundError"
	case 429:
		return "TooManyRequests"
	case 503, 504:
		return "ServiceUnavailable"
	}
	return "BadRequestError"
}

// Answers are what a request with this body gets when it is picked: for measurements of what the pick adds.
func Answers(pick *pickd.Pick, piece []byte) []*extprocv3.ProcessingResponse {
	return []*response{requestHeaders(routed(pick, 0)), requestBody(streamed(piece, true), nil)}
}
