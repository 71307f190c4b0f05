// The golden hashes of tests/abi, and picks against a real daemon. What it picks beside other languages is for
// tests/interop_test.py.

package pure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var goldenText = [8]byte{1, kindText, 1, 0, 0, 1} // blocks of 256 bytes

func goldenHasher() *hasher {
	secret := make([]byte, secretBytes)
	for at := range secret {
		secret[at] = byte(at*167 + 13)
	}
	return newHasher(secret)
}

func TestHashesAreTheGoldenOnes(t *testing.T) {
	h := goldenHasher()
	for text, want := range map[string]uint64{
		"": 0x4371D43F1F7DE86D, "a": 0x3158C5D991938A9E, strings.Repeat("x", 100): 0x9F40BBA557F7BB04,
		strings.Repeat("x", 256): 0xDA8BE0DDC1D312AB, strings.Repeat("x", 4096): 0xA84368D157172FF8,
	} {
		if got := h.hash([]byte(text)); got != want {
			t.Errorf("%d bytes: %x, not %x", len(text), got, want)
		}
	}
	text := algorithmOf(goldenText[:])
	for _, c := range []struct {
		model, salt string
		want        uint64
	}{{"", "", 0x01B7F0CC3C9CDD24}, {"llama-3.1-70b", "", 0xA8C65EE7D2B9155B}, {"llama-3.1-70b", "tenant 1", 0x417D4B632CC35585}} {
		if got := h.root(&text, c.model, c.salt); got != c.want {
			t.Errorf("root of %q, %q: %x, not %x", c.model, c.salt, got, c.want)
		}
	}
	first := h.chain(h.root(&text, "m", ""), h.hash([]byte(strings.Repeat("a", 256))))
	if first != 0x81F5CB854297A185 || h.chain(first, h.hash([]byte("tail"))) != 0x937D5A55CEF52AB0 {
		t.Errorf("chain: %x", first)
	}
}

// A daemon with engine-0 to engine-3, and its socket.
func startDaemon(t *testing.T) (string, *exec.Cmd) {
	t.Helper()
	bin := os.Getenv("DAEMON_BIN")
	if bin == "" {
		bin = "../../../../build/release/bin"
	}
	program := filepath.Join(bin, "pickd")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is not built", program)
	}
	directory, err := os.MkdirTemp("", "pickd-pure")
	if err != nil {
		t.Fatal(err)
	}
	socket, config := filepath.Join(directory, "s"), filepath.Join(directory, "pickd.yaml")
	text := fmt.Sprintf("listen: {socket: %s}\nstate: {path: %s/state, size_mib: 16}\nscrape: {enabled: false}\n"+
		"log: {level: warn}\nendpoints:\n", socket, directory)
	for at := range 4 {
		text += fmt.Sprintf("  - {name: engine-%d, address: \"127.0.0.1:%d\", models: [m]}\n", at, 9000+at)
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(program, "--config", config, "--profile", "prefix-load")
	daemon.Stderr = os.Stderr
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Kill()
		daemon.Wait()
		os.RemoveAll(directory)
	})
	for {
		connection, err := net.Dial("unixpacket", socket)
		if err == nil {
			connection.Close()
			return socket, daemon
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func open(t *testing.T, socket string) *Client {
	t.Helper()
	client, err := Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestPicksFindTheirPrefixAndReportsAreApplied(t *testing.T) {
	socket, _ := startDaemon(t)
	client := open(t, socket)
	ctx := context.Background()
	request := Request{Model: "m", Text: []string{strings.Repeat("Once upon a time ", 200)}}
	first, err := client.Pick(ctx, &request)
	if err != nil || len(first.Endpoints) != 4 || first.Endpoints[0].MatchTokens != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := client.Pick(ctx, &request)
	if err != nil || again.Endpoints[0].Name != first.Endpoints[0].Name || again.Endpoints[0].MatchTokens != 850 {
		t.Errorf("%+v, %v", again, err)
	}
	done := &Report{first.Ticket, 3, Unknown, Unknown, 5, ""}
	if err := client.ReportAndWait(ctx, done); err != nil {
		t.Error(err)
	}
	if err := client.ReportAndWait(ctx, done); err != syscall.ESTALE {
		t.Errorf("reported twice: %v", err)
	}
	if _, err := client.Pick(ctx, &Request{Model: "nobody's"}); err != syscall.ENOENT {
		t.Errorf("a model of nobody's: %v", err)
	}
}

func TestManyGoroutinesLongPromptsAndCancelledOnes(t *testing.T) {
	socket, daemon := startDaemon(t)
	client := open(t, socket)
	var wait sync.WaitGroup
	for at := range 3000 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if at%3 == 0 {
				go cancel()
			}
			text := strings.Repeat(fmt.Sprint("prompt ", at, "; "), 1+at%7*500)
			pick, err := client.Pick(ctx, &Request{Model: "m", Text: []string{text}})
			if err == nil {
				err = client.Report(&Report{pick.Ticket, 3, Unknown, Unknown, Unknown, ""})
			}
			if err != nil && !(at%3 == 0 && errors.Is(err, context.Canceled)) {
				t.Error(err)
			}
		}()
	}
	wait.Wait()
	client.mutex.Lock()
	if client.waiting != 0 {
		t.Errorf("%d are still waiting", client.waiting)
	}
	client.mutex.Unlock()
	// A daemon that goes is told at once to who waits and to who comes.
	daemon.Process.Signal(syscall.SIGSTOP)
	failed := make(chan error)
	go func() {
		_, err := client.Pick(context.Background(), &Request{Model: "m"})
		failed <- err
	}()
	daemon.Process.Kill()
	if err := <-failed; err != syscall.ENOTCONN {
		t.Errorf("the daemon went: %v", err)
	}
}
