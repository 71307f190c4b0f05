// Command go-extproc puts pickd behind Envoy in place of an Endpoint Picker: it serves Envoy's external processing
// protocol and picks with the daemon of this node. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/body"
	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
	"github.com/pickd/pickd/gateways/go-extproc/internal/serving"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if err == flag.ErrHelp {
			return
		}
		fmt.Fprintln(os.Stderr, "go-extproc:", err)
		os.Exit(1)
	}
}

// settings are the flags. Those that an Endpoint Picker has too bear its names.
type settings struct {
	host                              string
	grpcPort, healthPort, metricsPort int
	secure                            bool
	certPath, clientCAPath, socket    string
	drainTimeout, pickTimeout         time.Duration
	fallbacks, bodyMaxBytes           int
	busyPoll                          bool
	objectives                        objectives
	attributes                        names
}

type objectives map[string]int

func (o objectives) String() string { return "" }
func (o objectives) Set(text string) error {
	name, number, found := strings.Cut(text, "=")
	priority, err := strconv.Atoi(number)
	if !found || name == "" || err != nil || priority < -32768 || priority > 32767 {
		return fmt.Errorf("%q: NAME=PRIORITY is wanted, with a priority of -32768 to 32767", text)
	}
	o[name] = priority
	return nil
}

type names []string

func (n *names) String() string { return strings.Join(*n, ",") }
func (n *names) Set(text string) error {
	*n = append(*n, strings.Split(text, ",")...)
	return nil
}

func parse(arguments []string) (*settings, error) {
	s := &settings{objectives: objectives{}}
	flags := flag.NewFlagSet("go-extproc", flag.ContinueOnError)
	flags.StringVar(&s.host, "listen-host", "", "address to listen on; empty: all")
	flags.IntVar(&s.grpcPort, "grpc-port", 9002, "port of the external processing service; 0: any free one")
	flags.IntVar(&s.healthPort, "grpc-health-port", 9003, "port of the health service, without TLS; -1: none")
	flags.IntVar(&s.metricsPort, "metrics-port", 9090, "port of the page of metrics; -1: none")
	flags.BoolVar(&s.secure, "secure-serving", true, "serve with TLS")
	flags.StringVar(&s.certPath, "cert-path", "", "directory with tls.crt and tls.key, read again when changed; "+
		"empty: a certificate of its own")
	flags.StringVar(&s.clientCAPath, "client-ca-path", "", "authorities in PEM of which proxies need a certificate; "+
		"empty: they need none")
	flags.StringVar(&s.socket, "socket", "", "socket of pickd; empty: $PICKD_SOCKET, else /run/pickd/pickd.sock")
	flags.DurationVar(&s.drainTimeout, "drain-timeout", 30*time.Second, "how long requests may take to end at a stop")
	flags.DurationVar(&s.pickTimeout, "pick-timeout", 100*time.Millisecond, "how long a pick may take; shorter than the "+
		"message_timeout of Envoy's filter")
	flags.IntVar(&s.fallbacks, "fallbacks", 0, "endpoints that follow the first in the destination, 0 to 7; more "+
		"than 0 needs a cluster that understands the list (override_host, not original_dst)")
	flags.IntVar(&s.bodyMaxBytes, "body-max-bytes", 32<<20, "longest request body; longer ones are answered with 413")
	flags.BoolVar(&s.busyPoll, "busy-poll", false, "look for answers of pickd in place of waiting: lowest latency "+
		"for a core given away")
	flags.Var(s.objectives, "objective", "NAME=PRIORITY of an inference objective; may be repeated")
	flags.Var(&s.attributes, "attribute-headers", "names of more headers that plugins of pickd want, with commas")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("%q: only flags are understood", flags.Arg(0))
	case s.fallbacks < 0 || s.fallbacks > 7:
		return nil, fmt.Errorf("--fallbacks %d: 0 to 7", s.fallbacks)
	case s.bodyMaxBytes < 1:
		return nil, fmt.Errorf("--body-max-bytes %d: at least 1", s.bodyMaxBytes)
	case s.pickTimeout <= 0:
		return nil, fmt.Errorf("--pick-timeout %v: more than 0", s.pickTimeout)
	}
	return s, nil
}

// address of a port; empty for a negative one.
func (s *settings) address(port int) string {
	if port < 0 {
		return ""
	}
	return s.host + ":" + strconv.Itoa(port)
}

func run(arguments []string) error {
	s, err := parse(arguments)
	if err != nil {
		return err
	}
	const headroom = 1 << 20 // a message is a body's piece or the headers
	options := serving.Options{
		Address:        s.address(s.grpcPort),
		HealthAddress:  s.address(s.healthPort),
		MetricsAddress: s.address(s.metricsPort),
		MessageMax:     s.bodyMaxBytes + headroom,
		DrainTimeout:   s.drainTimeout,
		Service:        extprocv3.ExternalProcessor_ServiceDesc.ServiceName,
	}
	if s.secure {
		if options.TLS, err = serving.TLS(s.certPath, s.clientCAPath); err != nil {
			return err
		}
	}
	client, err := pickd.Open(pickd.Options{Socket: s.socket, Name: "go-extproc", BusyPoll: s.busyPoll})
	if err != nil {
		return err
	}
	defer client.Close()
	bodies, err := body.NewLibrary(s.bodyMaxBytes)
	if err != nil {
		return err
	}
	page := &metrics.Page{More: bodies.WriteMetrics}
	server := extproc.NewServer(client, bodies.Reader, page, extproc.Options{
		PickTimeout: s.pickTimeout,
		Fallbacks:   s.fallbacks,
		Objectives:  s.objectives,
		Attributes:  s.attributes,
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return serving.Serve(ctx, options,
		func(to *grpc.Server) { extprocv3.RegisterExternalProcessorServer(to, server) }, page,
		func(running serving.Running) {
			slog.Info("ready", "grpc", running.Address, "health", running.HealthAddress,
				"metrics", running.MetricsAddress, "tls", s.secure, "daemon", client.Info().Version)
		})
}
