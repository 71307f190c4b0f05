// Reading headers of a message. Knows no stream.

package extproc

import (
	"math"
	"strconv"
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	pickd "github.com/pickd/pickd/bindings/go"
)

// A head is what the headers of a message say. Envoy sends names in lower case.
type head []pickd.Attribute

func headOf(headers *extprocv3.HttpHeaders) head {
	list := headers.GetHeaders().GetHeaders()
	made := make(head, 0, len(list))
	for _, header := range list {
		value := header.GetValue()
		if raw := header.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		made = append(made, pickd.Attribute{Key: header.GetKey(), Value: value})
	}
	return made
}

// get returns the first header that there is of these names.
func (h head) get(names ...string) (string, bool) {
	for _, name := range names {
		for at := range h {
			if h[at].Key == name {
				return h[at].Value, true
			}
		}
	}
	return "", false
}

func (h head) text(names ...string) string {
	value, _ := h.get(names...)
	return value
}

// milliseconds of a header; what is not a number is no SLO, and what is absurd the daemon refuses and counts.
func (h head) milliseconds(names ...string) time.Duration {
	value, found := h.get(names...)
	if !found {
		return 0
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) || math.Abs(number) > 1e10 {
		return -time.Millisecond // counted by the daemon as unusable
	}
	return time.Duration(number * float64(time.Millisecond))
}

// attributes are what plugins of the daemon may ask for: those of EPP configurations, and more by name.
func (h head) attributes(more []string) []pickd.Attribute {
	var found []pickd.Attribute
	add := func(name string) {
		value, there := h.get(strings.ToLower(name))
		if there && len(value) <= headerBytesMax && len(found) < attributesMax {
			found = append(found, pickd.Attribute{Key: name, Value: value})
		}
	}
	for _, name := range attributeHeaders {
		add(name)
	}
	for _, name := range more {
		add(name)
	}
	return found
}

// servedOf returns who served, by the proxy's word: what the protocol has for it, or what Envoy says of its
// upstream connection, which may be another proxy's. Empty: not told.
func servedOf(message *extprocv3.ProcessingRequest) (served string, proxysWord bool) {
	lb := message.GetMetadataContext().GetFilterMetadata()[lbNamespace]
	if served := lb.GetFields()[servedKey].GetStringValue(); served != "" {
		return strings.TrimSpace(served), true
	}
	return message.GetAttributes()[attributesOfFilter].GetFields()[upstreamAddressName].GetStringValue(), false
}

// hostPort is what the proxy wants of an address, which may be a URL.
func hostPort(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	if host, _, found := strings.Cut(address, "/"); found {
		address = host
	}
	return address
}
