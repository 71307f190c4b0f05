// Names only: headers, metadata, plugins.

package extproc

// Names of the Endpoint Picker Protocol and of the headers that go with it. Older spellings are read too.
const (
	destinationKey      = "x-gateway-destination-endpoint"        // header, and key in lbNamespace
	servedKey           = "x-gateway-destination-endpoint-served" // key in lbNamespace
	subsetKey           = "x-gateway-destination-endpoint-subset" // key in subsetNamespace
	lbNamespace         = "envoy.lb"
	subsetNamespace     = "envoy.lb.subset_hint"
	prefillHeader       = "x-prefiller-host-port"
	encodeHeader        = "x-encoder-hosts-ports" // a list, of one here
	droppedReasonHeader = "x-llm-d-request-dropped-reason"
	upstreamTimeHeader  = "x-envoy-upstream-service-time"
	attributesOfFilter  = "envoy.filters.http.ext_proc"
	upstreamAddressName = "upstream.address"
	reasonSaturated     = "rejected-saturated"
	reasonNoEndpoints   = "rejected-no-endpoints"
	reasonExpired       = "rejected-ttl-expired"
	reasonShuttingDown  = "rejected-shutting-down"
	headerBytesMax      = 255 // of the value of an attribute of a pick
	attributesMax       = 32
	subsetMax           = 512
)

var (
	sloTTFTHeaders   = []string{"x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"}
	sloITLHeaders    = []string{"x-llm-d-slo-itl-ms", "x-slo-itl-ms", "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"}
	objectiveHeaders = []string{"x-llm-d-inference-objective", "x-gateway-inference-objective"}
)

// What plugins of EPP configurations look for, by the name they ask for.
var attributeHeaders = []string{"EPP-Profile", "x-session-token", "x-pickd-affinity-ttl"}
