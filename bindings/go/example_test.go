// The examples of the package documentation, run against a real daemon.

package pickd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
)

// The socket of a daemon that the examples use, started by TestMain where it is built.
var socket string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var stop func()
		socket, stop = exampleDaemon()
		defer stop()
		return m.Run()
	}())
}

func Example() {
	client, err := pickd.Open(pickd.Options{Socket: socket})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pick, err := client.Pick(ctx, pickd.Request{
		Model: "solo",
		Text:  []string{"You are a helpful assistant.", "What is a radix tree?"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pick.Address(), pick.Reason)
	// Output: 127.0.0.1:8000 only
}

func ExampleClient_Report() {
	client, err := pickd.Open(pickd.Options{Socket: socket})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	pick, err := client.Pick(ctx, pickd.Request{Model: "solo", Stream: true})
	if err != nil {
		log.Fatal(err)
	}
	// The request goes to pick.Address(); its first token comes:
	err = client.Report(ctx, pickd.Report{Ticket: pick.Ticket, Kind: pickd.FirstToken})
	if err != nil {
		log.Fatal(err)
	}
	// The answer ends with the engine's usage:
	err = client.Report(ctx, pickd.Report{
		Ticket:       pick.Ticket,
		Kind:         pickd.Done,
		PromptTokens: pickd.Tokens(2048),
		CachedTokens: pickd.Tokens(1984),
		OutputTokens: pickd.Tokens(128),
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleHTTPStatus() {
	client, err := pickd.Open(pickd.Options{Socket: socket})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Pick(context.Background(), pickd.Request{Model: "of nobody"})
	fmt.Println(errors.Is(err, pickd.ErrNotFound), pickd.HTTPStatus(err))
	_, err = client.Pick(context.Background(), pickd.Request{Subset: []string{}})
	fmt.Println(errors.Is(err, pickd.ErrNoEndpoint), pickd.HTTPStatus(err))
	// Output:
	// true 404
	// true 503
}

// exampleDaemon starts a daemon with one endpoint that serves "solo". Without a build tree the examples fail, as
// they would without a daemon.
func exampleDaemon() (string, func()) {
	path, err := exec.LookPath(filepath.Join(binaryDirectory(), "pickd"))
	if err != nil {
		return "", func() {}
	}
	directory, err := os.MkdirTemp("", "pickd-go")
	if err != nil {
		log.Fatal(err)
	}
	d := &daemon{socket: filepath.Join(directory, "s"), config: filepath.Join(directory, "pickd.yaml")}
	text := fmt.Sprintf("listen: {socket: %s}\nstate: {path: %s/state, size_mib: 16}\n"+
		"scrape: {enabled: false}\nlog: {level: warn}\n"+
		"endpoints: [{name: solo, address: \"127.0.0.1:8000\", models: [solo]}]\n", d.socket, directory)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := d.run(path); err != nil {
		log.Fatal(err)
	}
	return d.socket, func() {
		d.kill()
		os.RemoveAll(directory)
	}
}

// The README shows examples/pick/main.go; tests/go_bindings_test.py holds it to that.
func TestTheExampleProgramPicks(t *testing.T) {
	d := startDaemon(t)
	program := filepath.Join(t.TempDir(), "pick")
	if output, err := exec.Command("go", "build", "-o", program, "./examples/pick").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	run := exec.Command(program, "m", prompt(1, 64))
	run.Env = append(os.Environ(), "PICKD_SOCKET="+d.socket)
	output, err := run.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), "127.0.0.1:900") {
		t.Errorf("%v: %s", err, output)
	}
	run = exec.Command(program, "nobody's", "Hello")
	run.Env = append(os.Environ(), "PICKD_SOCKET="+d.socket)
	if output, err = run.CombinedOutput(); err == nil || !strings.Contains(string(output), "HTTP status 404") {
		t.Errorf("%v: %s", err, output)
	}
}
