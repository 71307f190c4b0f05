// Package pickd asks the pickd daemon which endpoint should serve an LLM inference request.
//
// A [Client] is one connection to the daemon of this node. Any number of goroutines may use it at
// once; a goroutine that waits for an answer holds no operating system thread. Picks go through
// libpickd's asynchronous queue: a submission is one short call into C, answers come in batches, and the
// wait is on a descriptor in the runtime's network poller.
//
//	client, err := pickd.Open(pickd.Options{})
//	...
//	defer client.Close()
//	pick, err := client.Pick(ctx, pickd.Request{Model: "llama-3.1-70b", Text: []string{prompt}})
//	if err != nil {
//		http.Error(w, err.Error(), pickd.HTTPStatus(err))
//		return
//	}
//	// send the request to pick.Address(); the others in pick.Endpoints are where to try next
//
// # Reports
//
// A pick reserves load at its endpoint. Report on its ticket what becomes of the request: the first token
// ([FirstToken]) frees the reserved prompt tokens, its end ([Done], [Failed], [Cancelled]) the rest, and
// the engine's usage teaches the daemon how long requests take. Where another endpoint of the pick had
// to step in, say so with [Fallback]. Without reports a reservation ends with its lease.
//
// # When the daemon is away
//
// Picks go on: libpickd still sees the state that the daemon left and picks from it. Such a [Pick] has
// Degraded set. A context with a deadline also covers a daemon that is there and does not answer: the
// degraded pick comes shortly before the deadline. Without a deadline, a pick waits for such a daemon.
//
// # Errors
//
// What libpickd returns comes as an [*Error] with a [Code]; test for it with errors.Is:
//
//	errors.Is(err, pickd.ErrNoEndpoint) // 503: no ready endpoint, or none in the subset
//	errors.Is(err, pickd.ErrShed)       // 429: the filters left nobody
//
// A pick that ends with its context returns the context's error.
//
// # What it costs
//
// A pick and its report take 1.5 us of CPU time more than by an event loop in C, with 32 or with 1,000 outstanding.
// About 1 us of it, at 32, is cgo: a client in pure Go, written from the layout document, takes 0.5 us more than C. With
// 1,000 outstanding both take the same, because a call into C serves many picks then. The README has the table and the
// command that makes it. Through libpickd come picks while the daemon is away, new connections, and its hashing.
//
// # Building
//
// The package links libpickd.so.0 through cgo and finds it with pkg-config under the name pickd. Against a
// build tree of pickd, set PKG_CONFIG_PATH to build/release/pkgconfig.
package pickd
