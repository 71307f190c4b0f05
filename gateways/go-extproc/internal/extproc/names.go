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
	cacheSourceHeader   = "x-kv-cache-source-host-port"
	dataParallelHeader  = "x-data-parallel-host-port"
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
	endpointsMax        = 8    // that a pick lists
	subsetMax           = 512  // of one pick
	subsetOfHintMax     = 4096 // as many endpoints as a daemon has
	subsetBytesMax      = 127  // of a name or an address
)

var (
	sloTTFTHeaders   = []string{"x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"}
	sloITLHeaders    = []string{"x-llm-d-slo-itl-ms", "x-slo-itl-ms", "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"}
	objectiveHeaders = []string{"x-llm-d-inference-objective", "x-gateway-inference-objective"}
)

// What only a picker may say to an engine, and this one does not: whoever else could make the engine connect where he
// likes.
var pickersHeaders = []string{cacheSourceHeader, dataParallelHeader}

// What plugins of EPP configurations look for, by the name they ask for.
var attributeHeaders = []string{"EPP-Profile", "x-session-token", "x-pickd-affinity-ttl"}
