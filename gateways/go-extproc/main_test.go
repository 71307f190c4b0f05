// The program as it is run: flags, health, TLS, metrics, stopping in order.

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/pickd/pickd/gateways/go-extproc/internal/testrun"
)

var buildDirectory string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if buildDirectory, err = os.MkdirTemp("", "go-extproc"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(buildDirectory)
		return m.Run()
	}())
}

var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(buildDirectory, "go-extproc")
	output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return program, err
})

// build makes the program, once.
func build(t testing.TB) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// A process is the program under way.
type process struct {
	command               *exec.Cmd
	grpc, health, metrics string
	ended                 chan error
}

func start(t testing.TB, program string, flags ...string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1)}
	p.command = exec.Command(program, append([]string{"--listen-host", "127.0.0.1", "--grpc-port", "0",
		"--grpc-health-port", "0", "--metrics-port", "0", "--pick-timeout", "10s"}, flags...)...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.command.Process.Kill() })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "msg=ready") || strings.Contains(lines.Text(), " ready ") {
			for _, word := range strings.Fields(lines.Text()) {
				name, value, _ := strings.Cut(word, "=")
				switch name {
				case "grpc":
					p.grpc = value
				case "health":
					p.health = value
				case "metrics":
					p.metrics = value
				}
			}
			break
		}
		t.Log(lines.Text())
	}
	if p.grpc == "" {
		t.Fatal("it does not become ready")
	}
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
		p.ended <- p.command.Wait()
	}()
	return p
}

func dial(t *testing.T, address string, with credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func healthOf(t *testing.T, connection *grpc.ClientConn, service string) (healthv1.HealthCheckResponse_ServingStatus, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := healthv1.NewHealthClient(connection).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	return answer.GetStatus(), err
}

const service = "envoy.service.ext_proc.v3.ExternalProcessor"

func daemon(t *testing.T) *testrun.Daemon {
	return testrun.StartDaemon(t, `scrape: {enabled: false}
endpoints: [{name: a, address: "127.0.0.1:9000"}]`)
}

// begin sends the headers of a request without a body and takes the answer.
func begin(t *testing.T, connection *grpc.ClientConn) extprocv3.ExternalProcessor_ProcessClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	stream, err := extprocv3.NewExternalProcessorClient(connection).Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extprocv3.HttpHeaders{EndOfStream: true, Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
			{Key: ":path", RawValue: []byte("/v1/models")}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.GetRequestHeaders() == nil {
		t.Fatalf("%v, %v", answer, err)
	}
	return stream
}

func TestItServesWithACertificateOfItsOwnAndTellsItsHealthAndFigures(t *testing.T) {
	d := daemon(t)
	p := start(t, build(t), "--socket", d.Socket)
	encrypted := dial(t, p.grpc, credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))
	begin(t, encrypted).CloseSend()
	plain := dial(t, p.health, insecure.NewCredentials())
	for _, connection := range []*grpc.ClientConn{encrypted, plain} {
		for _, name := range []string{"", service} {
			if status, err := healthOf(t, connection, name); err != nil || status != healthv1.HealthCheckResponse_SERVING {
				t.Errorf("health of %q: %v, %v", name, status, err)
			}
		}
	}
	if _, err := healthOf(t, dial(t, p.grpc, insecure.NewCredentials()), ""); err == nil {
		t.Error("the service answers without TLS")
	}
	answer, err := http.Get("http://" + p.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if page, _ := io.ReadAll(answer.Body); !strings.Contains(string(page), `requests_total{outcome="picked"} 1`) {
		t.Errorf("the page says\n%s", page)
	}
}

func TestAStopLetsRequestsEndAndTakesNoNewOnes(t *testing.T) {
	d := daemon(t)
	p := start(t, build(t), "--socket", d.Socket, "--secure-serving=false")
	connection := dial(t, p.grpc, insecure.NewCredentials())
	stream := begin(t, connection)
	health := dial(t, p.health, insecure.NewCredentials())
	if status, err := healthOf(t, health, service); err != nil || status != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("health: %v, %v", status, err)
	}
	p.command.Process.Signal(syscall.SIGTERM)
	testrun.Eventually(t, "it says that it is not healthy", func() bool {
		status, err := healthOf(t, health, service)
		return err == nil && status == healthv1.HealthCheckResponse_NOT_SERVING
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if late, err := extprocv3.NewExternalProcessorClient(dial(t, p.grpc, insecure.NewCredentials())).Process(ctx); err == nil {
		if _, err := late.Recv(); err == nil {
			t.Error("a new request is taken")
		}
	}
	err := stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: &extprocv3.HttpHeaders{EndOfStream: true, Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
			{Key: ":status", RawValue: []byte("200")}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.GetResponseHeaders() == nil {
		t.Errorf("the request under way got %v, %v", answer, err)
	}
	stream.CloseSend()
	if err := <-p.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	testrun.Eventually(t, "nothing stays reserved", func() bool { return d.Inflight(t) == 0 })
}

func TestAStopDoesNotWaitForEver(t *testing.T) {
	d := daemon(t)
	p := start(t, build(t), "--socket", d.Socket, "--secure-serving=false", "--drain-timeout", "100ms")
	stream := begin(t, dial(t, p.grpc, insecure.NewCredentials()))
	p.command.Process.Signal(syscall.SIGTERM)
	if err := <-p.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the request under way got %v", err)
	}
	testrun.Eventually(t, "nothing stays reserved", func() bool { return d.Inflight(t) == 0 })
}

// authority is a certificate and key in a directory, and the pool that trusts it.
func authority(t *testing.T) (directory string, trust *x509.CertPool, pair tls.Certificate) {
	t.Helper()
	directory = t.TempDir()
	certificate, key := filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	output, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
		"-nodes", "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
		"-keyout", key, "-out", certificate).CombinedOutput()
	if err != nil {
		t.Skipf("openssl makes no certificate: %v: %s", err, output)
	}
	text, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	read, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(read)
	if pair, err = tls.LoadX509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
	return directory, trust, pair
}

func TestCertificatesAreReadAgainAndProxiesMayNeedOne(t *testing.T) {
	d := daemon(t)
	directory, trust, pair := authority(t)
	p := start(t, build(t), "--socket", d.Socket, "--cert-path", directory, "--client-ca-path",
		filepath.Join(directory, "tls.crt"))
	with := func(trust *x509.CertPool, own ...tls.Certificate) error {
		_, err := healthOf(t, dial(t, p.grpc, credentials.NewTLS(&tls.Config{RootCAs: trust, Certificates: own})), "")
		return err
	}
	if err := with(trust, pair); err != nil {
		t.Error(err)
	}
	if err := with(trust); err == nil {
		t.Error("a proxy without a certificate is served")
	}
	other, otherTrust, _ := authority(t)
	for _, name := range []string{"tls.key", "tls.crt"} {
		if err := os.Rename(filepath.Join(other, name), filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := with(otherTrust, pair); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
	if err := with(trust, pair); err == nil {
		t.Error("the old certificate is still shown")
	}
}

func TestFlagsThatMeanNothingAreRefusedWithWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ flags, says string }{
		{"--fallbacks 8", "0 to 7"}, {"--pick-timeout 0s", "more than 0"}, {"--objective batch", "NAME=PRIORITY"},
		{"--objective batch=99999", "-32768 to 32767"}, {"--body-max-bytes 0", "at least 1"}, {"more", "only flags"},
		{"--cert-path /nowhere", "/nowhere"},
	} {
		err := run(strings.Fields(c.flags))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.flags, err)
		}
	}
	s, err := parse(strings.Fields("--objective a=-1 --objective b=2 --attribute-headers x,y --attribute-headers z"))
	if err != nil || s.objectives["a"] != -1 || s.objectives["b"] != 2 || len(s.attributes) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if text, _ := json.Marshal(s.attributes); string(text) != `["x","y","z"]` {
		t.Errorf("%s", text)
	}
}
