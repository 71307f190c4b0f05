// Bench measures what picking adds to a request on its way through the external-processing server: in one process and
// one run, requests go in turns to this server and to one that reads the same messages and answers the same way
// without picking. The time is from sending the headers until the body is back.
//
//	go run ./internal/bench [-requests 5000] [-prompt-bytes 4000] [-busy=false] [-daemon PATH]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/body"
	"github.com/pickd/pickd/gateways/go-extproc/internal/extproc"
	"github.com/pickd/pickd/gateways/go-extproc/internal/metrics"
)

const (
	endpoints = 16
	bodyMax   = 32 << 20
	prompts   = 200
)

func main() {
	log.SetFlags(0)
	requests := flag.Int("requests", 5000, "requests to each server")
	promptBytes := flag.Int("prompt-bytes", 4000, "length of a prompt")
	busy := flag.Bool("busy", true, "client and daemon poll busily")
	program := flag.String("daemon", "../../build/release/bin/pickd", "the daemon's program")
	flag.Parse()

	directory, err := os.MkdirTemp("", "extproc-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(directory)
	stop := startDaemon(*program, directory, *busy)
	defer stop()
	client, err := pickd.Open(pickd.Options{Socket: directory + "/s", BusyPoll: *busy})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	bodies, err := body.NewLibrary(bodyMax)
	if err != nil {
		log.Fatal(err)
	}
	picking := serve(directory+"/picking", extproc.NewServer(client, bodies.Reader, &metrics.Page{},
		extproc.Options{PickTimeout: time.Second}))
	nothing := serve(directory+"/nothing", &idle{})

	texts := makeBodies(*promptBytes)
	var took [2][]time.Duration
	for at := -*requests / 10; at < *requests; at++ {
		text := texts[(at+*requests)%prompts]
		for which, server := range []extprocv3.ExternalProcessorClient{picking, nothing} {
			if at%2 == 0 { // who goes first alternates
				which = 1 - which
				server = []extprocv3.ExternalProcessorClient{picking, nothing}[which]
			}
			one, err := request(server, text)
			if err != nil {
				log.Fatal(err)
			}
			if at >= 0 {
				took[which] = append(took[which], one)
			}
		}
	}
	fmt.Printf("%d requests in turns, prompts of %d bytes, %d endpoints, busy polling %t\n", *requests, *promptBytes,
		endpoints, *busy)
	fmt.Println("us                     p50       p90       p99")
	var quantiles [2][3]float64
	for which := range took {
		slices.Sort(took[which])
		for at, share := range []float64{0.5, 0.9, 0.99} {
			one := took[which][int(share*float64(len(took[which])-1))]
			quantiles[which][at] = float64(one.Nanoseconds()) / 1e3
		}
	}
	row := func(name string, values [3]float64) {
		fmt.Printf("%-16s %9.1f %9.1f %9.1f\n", name, values[0], values[1], values[2])
	}
	row("picking", quantiles[0])
	row("doing nothing", quantiles[1])
	for at := range quantiles[0] {
		quantiles[0][at] -= quantiles[1][at]
	}
	row("added", quantiles[0])
}

// request plays the proxy until the body is back, then closes the stream.
func request(server extprocv3.ExternalProcessorClient, text []byte) (time.Duration, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	from := time.Now()
	stream, err := server.Process(ctx)
	if err != nil {
		return 0, err
	}
	const duplex = filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
	err = stream.Send(&extprocv3.ProcessingRequest{
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: duplex, ResponseBodyMode: duplex},
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
				{Key: ":method", RawValue: []byte("POST")}, {Key: ":path", RawValue: []byte("/v1/completions")},
				{Key: ":authority", RawValue: []byte("gateway")}, {Key: "content-type", RawValue: []byte("application/json")},
			}}}},
	})
	if err != nil {
		return 0, err
	}
	err = stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: text, EndOfStream: true}}})
	if err != nil {
		return 0, err
	}
	for range 2 {
		answer, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		if refused := answer.GetImmediateResponse(); refused != nil {
			return 0, fmt.Errorf("refused: %s", refused.GetBody())
		}
	}
	took := time.Since(from)
	stream.CloseSend()
	_, _ = stream.Recv()
	return took, nil
}

// idle answers as the server does, with a destination that it knows beforehand.
type idle struct {
	extprocv3.UnimplementedExternalProcessorServer
}

func (*idle) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil
		}
		part := message.GetRequestBody()
		if part == nil {
			continue
		}
		pick := pickd.Pick{Endpoints: []pickd.Endpoint{{Address: "127.0.0.1:9000"}}}
		for _, answer := range extproc.Answers(&pick, part.GetBody()) {
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

func serve(path string, with extprocv3.ExternalProcessorServer) extprocv3.ExternalProcessorClient {
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server, with)
	go server.Serve(listener)
	connection, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return extprocv3.NewExternalProcessorClient(connection)
}

func makeBodies(promptBytes int) [][]byte {
	bodies := make([][]byte, prompts)
	for at := range bodies {
		var prompt strings.Builder
		for prompt.Len() < promptBytes {
			fmt.Fprintf(&prompt, "prompt %d says %d; ", at, prompt.Len())
		}
		bodies[at] = fmt.Appendf(nil, `{"model": "m", "prompt": %q, "stream": true}`, prompt.String())
	}
	return bodies
}

func startDaemon(program, directory string, busy bool) func() {
	text := fmt.Sprintf("listen: {socket: %s/s}\nstate: {path: %s/state, size_mib: 64}\nscrape: {enabled: false}\n"+
		"workers: {count: 1, busy_poll: %t}\nlog: {level: warn}\nendpoints:\n", directory, directory, busy)
	for at := range endpoints {
		text += fmt.Sprintf("  - {name: engine-%d, address: \"127.0.0.1:%d\", models: [m]}\n", at, 9000+at)
	}
	config := filepath.Join(directory, "pickd.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	daemon := exec.Command(program, "--config", config)
	daemon.Stderr = os.Stderr
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := daemon.Start(); err != nil {
		log.Fatal(err)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		connection, err := net.Dial("unixpacket", directory+"/s")
		if err == nil {
			connection.Close()
			break
		}
		if time.Now().After(until) {
			log.Fatalf("the daemon does not listen: %v", err)
		}
	}
	return func() {
		daemon.Process.Kill()
		daemon.Wait()
	}
}
