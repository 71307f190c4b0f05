// The pure client under the other one's types.

package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/bindings/go/internal/pure"
)

type pureClient struct{ *pure.Client }

func (c pureClient) Pick(ctx context.Context, r pickd.Request) (pickd.Pick, error) {
	request := pure.Request{
		Model: r.Model, Adapter: r.Adapter, Salt: r.Salt, Text: r.Text, TokenIDs: r.TokenIDs,
		PromptTokens: r.PromptTokens, SessionID: r.SessionID, FairnessID: r.FairnessID, RequestID: r.RequestID,
		Subset: r.Subset, Priority: r.Priority, ExpectedOutputTokens: r.ExpectedOutputTokens,
		EndpointsMax: r.EndpointsMax, Stream: r.Stream, DryRun: r.DryRun, Media: r.Media,
		SLOTTFTMs: float64(r.SLOTTFT) / float64(time.Millisecond),
		SLOITLMs:  float64(r.SLOITL) / float64(time.Millisecond),
	}
	for _, extra := range r.Extras {
		request.Extras = append(request.Extras, pure.Extra(extra))
	}
	for _, attribute := range r.Attributes {
		request.Attributes = append(request.Attributes, [2]string{attribute.Key, attribute.Value})
	}
	pick, err := c.Client.Pick(ctx, &request)
	if err != nil {
		return pickd.Pick{}, told(err)
	}
	made := pickd.Pick{Ticket: pickd.Ticket(pick.Ticket), Cut: pick.Cut, PromptTokens: pick.PromptTokens,
		Reason: pickd.Reason(pick.Reason)}
	for _, e := range pick.Endpoints {
		made.Endpoints = append(made.Endpoints, pickd.Endpoint{Address: e.Address, Name: e.Name,
			Role: pickd.Role(e.Role), MatchTokens: e.MatchTokens, Score: float64(e.Score)})
	}
	return made, nil
}

func (c pureClient) ReportAndWait(ctx context.Context, r pickd.Report) error {
	count := func(of pickd.Count) uint32 {
		if n, known := of.Get(); known {
			return uint32(n)
		}
		return pure.Unknown
	}
	return told(c.Client.ReportAndWait(ctx, &pure.Report{Ticket: pure.Ticket(r.Ticket), Kind: byte(r.Kind),
		PromptTokens: count(r.PromptTokens), CachedTokens: count(r.CachedTokens),
		OutputTokens: count(r.OutputTokens), Endpoint: r.Endpoint}))
}

func told(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return pickd.Code(errno)
	}
	return err
}
