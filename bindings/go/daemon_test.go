// What the tests share: a real daemon in a directory of its own.

package pickd_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
)

// A daemon is a real pickd with endpoints that nobody scrapes.
type daemon struct {
	socket string
	config string
	cmd    *exec.Cmd
}

// binaryDirectory is where the build tree has its programs: DAEMON_BIN, where that is set.
func binaryDirectory() string {
	if directory := os.Getenv("DAEMON_BIN"); directory != "" {
		return directory
	}
	return "../../build/release/bin"
}

func binary(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(binaryDirectory(), name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not built; build the tree or set DAEMON_BIN to its bin directory", path)
	}
	return path
}

const engines = 4

// startDaemon starts pickd with engines engine-0 to engine-3 that serve "m", plus lines of YAML.
func startDaemon(t testing.TB, more ...string) *daemon {
	t.Helper()
	// Not t.TempDir(): its name may be too long for a socket.
	directory, err := os.MkdirTemp("", "pickd-go")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{socket: filepath.Join(directory, "s"), config: filepath.Join(directory, "pickd.yaml")}
	t.Cleanup(func() {
		d.kill()
		os.RemoveAll(directory)
	})
	var text strings.Builder
	fmt.Fprintf(&text, "listen: {socket: %s}\nstate: {path: %s/state, size_mib: 16}\n", d.socket, directory)
	fmt.Fprintf(&text, "scrape: {enabled: false}\nlog: {level: warn}\n")
	for _, line := range more {
		fmt.Fprintln(&text, line)
	}
	fmt.Fprintln(&text, "endpoints:")
	for at := range engines {
		fmt.Fprintf(&text, "  - {name: engine-%d, address: \"127.0.0.1:%d\", models: [m]}\n", at, 9000+at)
	}
	if err := os.WriteFile(d.config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start(t)
	return d
}

func (d *daemon) start(t testing.TB) {
	t.Helper()
	if err := d.run(binary(t, "pickd")); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) run(program string) error {
	// The kernel may keep a killed daemon's socket open for a moment, and it would take connections.
	os.Remove(d.socket)
	// By prefix first: to the cost, a few blocks on an idle engine are worth no waiting.
	d.cmd = exec.Command(program, "--config", d.config, "--profile", "prefix-load")
	for _, variable := range os.Environ() { // the daemon refuses PICKD_ variables it does not know
		if !strings.HasPrefix(variable, "PICKD_") {
			d.cmd.Env = append(d.cmd.Env, variable)
		}
	}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := d.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			fmt.Fprintln(os.Stderr, "daemon:", lines.Text())
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if connection, err := net.Dial("unixpacket", d.socket); err == nil {
			connection.Close()
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("the daemon does not listen: %w", err)
		}
	}
}

func (d *daemon) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// stop returns when every thread of the daemon stands still.
func (d *daemon) stop(t testing.TB) {
	t.Helper()
	d.signal(t, syscall.SIGSTOP)
	tasks := fmt.Sprintf("/proc/%d/task", d.cmd.Process.Pid)
	for stopped := false; !stopped; {
		entries, err := os.ReadDir(tasks)
		if err != nil {
			t.Fatal(err)
		}
		stopped = true
		for _, entry := range entries {
			stat, err := os.ReadFile(filepath.Join(tasks, entry.Name(), "stat"))
			// "pid (name) state ..."
			at := strings.LastIndex(string(stat), ") ")
			stopped = stopped && err == nil && at > 0 && stat[at+2] == 'T'
		}
	}
}

func (d *daemon) goOn(t testing.TB) {
	t.Helper()
	d.signal(t, syscall.SIGCONT)
}

func (d *daemon) kill() {
	if d.cmd != nil {
		d.cmd.Process.Kill()
		d.cmd.Wait()
		d.cmd = nil
	}
}

func open(t testing.TB, d *daemon, options pickd.Options) *pickd.Client {
	t.Helper()
	options.Socket = d.socket
	client, err := pickd.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// soon is a context that only a hanging test outlives.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustPick(t testing.TB, client *pickd.Client, request pickd.Request) pickd.Pick {
	t.Helper()
	pick, err := client.Pick(soon(t), request)
	if err != nil {
		t.Fatal(err)
	}
	return pick
}

// prompt of so many tokens of four bytes, different for each seed.
func prompt(seed, tokens int) string {
	var text strings.Builder
	for at := 0; text.Len() < 4*tokens; at++ {
		fmt.Fprintf(&text, "%d of prompt %d, ", at, seed)
	}
	return text.String()[:4*tokens]
}
