// Which endpoints a proxy allows, and how they are told to the daemon.

package extproc

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	pickd "github.com/pickd/pickd/bindings/go"
)

// subsetOf returns the endpoints that the proxy allows; nil: all. A hint that is there and holds no string
// that can be read means nobody.
func (s *Server) subsetOf(metadata *corev3.Metadata) []string {
	hint := metadata.GetFilterMetadata()[subsetNamespace]
	value, found := hint.GetFields()[subsetKey]
	if !found {
		return nil
	}
	subset := []string{}
	for _, element := range value.GetListValue().GetValues() {
		subset = appendAddresses(subset, element.GetStringValue())
	}
	subset = appendAddresses(subset, value.GetStringValue())
	if len(subset) > subsetOfHintMax {
		s.hintCut.Do(func() {
			slog.Warn("a subset hint is longer than a daemon has endpoints; the rest is not looked at",
				"addresses", len(subset), "at most", subsetOfHintMax)
		})
		subset = subset[:subsetOfHintMax]
	}
	return subset
}

// appendAddresses splits "ip:port,ip:port". What is longer than any name or address is nobody's.
func appendAddresses(to []string, list string) []string {
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address != "" && len(address) <= subsetBytesMax {
			to = append(to, address)
		}
	}
	return to
}

// pickInSubset picks among all of a subset, of which the daemon takes a part at a time. A longer one begins anywhere,
// so that nobody in it is left idle, and goes on where a part has nobody.
func (s *Server) pickInSubset(ctx context.Context, request pickd.Request) (pickd.Pick, error) {
	whole := request.Subset
	if len(whole) <= subsetMax {
		return s.client.Pick(ctx, request)
	}
	from := rand.IntN(len(whole))
	turned := append(append(make([]string, 0, len(whole)), whole[from:]...), whole[:from]...)
	for {
		request.Subset = turned[:min(subsetMax, len(turned))]
		turned = turned[len(request.Subset):]
		pick, err := s.client.Pick(ctx, request)
		if len(turned) == 0 || !errors.Is(err, pickd.ErrNoEndpoint) {
			return pick, err
		}
	}
}
