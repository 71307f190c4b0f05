// Package serving has what every gRPC server needs around its service: ports, TLS, health, a page of metrics,
// and an end that lets requests finish. It knows nothing of picks.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Options of [Serve].
type Options struct {
	Address        string // "host:port" of the service; the health service answers there too
	HealthAddress  string // of the health service alone, without TLS; empty: none
	MetricsAddress string // of the page of metrics; empty: none
	TLS            *tls.Config
	MessageMax     int // bytes of one message
	DrainTimeout   time.Duration
	Service        string // the name that health is asked for, beside ""
}

// Running are the addresses that were bound, for ports of 0.
type Running struct {
	Address, HealthAddress, MetricsAddress string
}

const windowBytes = 1 << 20 // flow control: a body of this size comes without waiting

// Serve serves until the context ends, then says that it is not healthy, takes no new requests, and gives those under
// way DrainTimeout to end. `ready` is called when all ports are bound.
func Serve(ctx context.Context, options Options, register func(*grpc.Server), page http.Handler,
	ready func(Running)) error {
	listeners, err := listenAll(options.Address, options.HealthAddress, options.MetricsAddress)
	if err != nil {
		return err
	}
	checks := health.NewServer()
	checks.SetServingStatus(options.Service, healthv1.HealthCheckResponse_SERVING)
	server := grpc.NewServer(serverOptions(options)...)
	register(server)
	healthv1.RegisterHealthServer(server, checks)

	ended := make(chan error, 3)
	running := Running{Address: listeners[0].Addr().String()}
	go func() { ended <- server.Serve(listeners[0]) }()
	var healthServer *grpc.Server
	if listeners[1] != nil {
		running.HealthAddress = listeners[1].Addr().String()
		healthServer = grpc.NewServer()
		healthv1.RegisterHealthServer(healthServer, checks)
		go func() { ended <- healthServer.Serve(listeners[1]) }()
	}
	pages := &http.Server{Handler: pagesOf(page), ReadHeaderTimeout: 10 * time.Second}
	if listeners[2] != nil {
		running.MetricsAddress = listeners[2].Addr().String()
		go func() { ended <- pages.Serve(listeners[2]) }()
	}
	ready(running)

	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	checks.Shutdown()
	drain(server, options.DrainTimeout)
	if healthServer != nil {
		healthServer.Stop()
	}
	pages.Close()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

func serverOptions(options Options) []grpc.ServerOption {
	made := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(options.MessageMax),
		grpc.InitialWindowSize(windowBytes),
		grpc.InitialConnWindowSize(4 * windowBytes),
		// Proxies ping as they are configured to; that is not an attack.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if options.TLS != nil {
		made = append(made, grpc.Creds(credentials.NewTLS(options.TLS)))
	}
	return made
}

// listenAll binds each address that is not empty, or none.
func listenAll(addresses ...string) ([]net.Listener, error) {
	listeners := make([]net.Listener, len(addresses))
	for at, address := range addresses {
		if address == "" {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			for _, bound := range listeners[:at] {
				if bound != nil {
					bound.Close()
				}
			}
			return nil, fmt.Errorf("cannot listen: %w", err)
		}
		listeners[at] = listener
	}
	return listeners, nil
}

func pagesOf(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	return mux
}

func drain(server *grpc.Server, timeout time.Duration) {
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(timeout):
		server.Stop()
		<-stopped
	}
}
