// Package testrun starts the real programs of a build tree for tests: the daemon, and what it is asked about.
package testrun

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Binary is where the build tree has a program: in DAEMON_BIN, else in build/release/bin. It skips the test
// where that is not built.
func Binary(t testing.TB, name string) string {
	t.Helper()
	directory := os.Getenv("DAEMON_BIN")
	for up := "."; directory == "" && len(up) < 20; up += "/.." {
		if _, err := os.Stat(up + "/build/release/bin/pickd"); err == nil {
			directory = up + "/build/release/bin"
		}
	}
	path, err := filepath.Abs(filepath.Join(directory, name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("%s is not built: %v; build the tree or set DAEMON_BIN", name, err)
	}
	return path
}

// Start starts a program that dies with this process, and with the test.
func Start(t testing.TB, program string, arguments ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	command := exec.Command(program, arguments...)
	for _, variable := range os.Environ() { // the daemon refuses PICKD_ variables that it does not know
		if !strings.HasPrefix(variable, "PICKD_") {
			command.Env = append(command.Env, variable)
		}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	return command, bufio.NewScanner(output)
}

// Eventually waits until something becomes true, a minute at most.
func Eventually(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ready(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in a minute: " + what)
		}
	}
}

// A Daemon is a pickd of the test's own.
type Daemon struct {
	Socket  string
	command *exec.Cmd
	config  string
	ctl     string
}

// StartDaemon starts one with lines of YAML for endpoints and whatever else.
func StartDaemon(t testing.TB, yaml ...string) *Daemon {
	t.Helper()
	program := Binary(t, "pickd")
	directory, err := os.MkdirTemp("", "pickd-extproc") // a short name: sockets' are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	d := &Daemon{Socket: directory + "/s", config: directory + "/pickd.yaml", ctl: Binary(t, "pickctl")}
	text := fmt.Sprintf("listen: {socket: %s}\nstate: {path: %s/state, size_mib: 16}\nlog: {level: warn}\n%s\n", d.Socket,
		directory, strings.Join(yaml, "\n"))
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.command, _ = Start(t, program, "--config", d.config)
	Eventually(t, "the daemon listens", func() bool {
		connection, err := net.Dial("unixpacket", d.Socket)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	return d
}

// Kill ends the daemon as a crash does.
func (d *Daemon) Kill() {
	d.command.Process.Kill()
	d.command.Wait()
}

// An Endpoint is what the daemon says of one.
type Endpoint struct {
	Name, Address, State string
	Inflight             int `json:"inflight_requests"`
	InflightTokens       int `json:"inflight_tokens"`
}

// Endpoints asks the daemon, by name.
func (d *Daemon) Endpoints(t testing.TB) map[string]Endpoint {
	t.Helper()
	var told struct{ Endpoints []Endpoint }
	d.ask(t, &told, "endpoints")
	byName := map[string]Endpoint{}
	for _, endpoint := range told.Endpoints {
		byName[endpoint.Name] = endpoint
	}
	return byName
}

// Counters asks the daemon.
func (d *Daemon) Counters(t testing.TB) map[string]float64 {
	t.Helper()
	var told struct{ Counters map[string]float64 }
	d.ask(t, &told, "status")
	return told.Counters
}

// Inflight is how many requests the daemon has under way everywhere.
func (d *Daemon) Inflight(t testing.TB) int {
	t.Helper()
	total := 0
	for _, endpoint := range d.Endpoints(t) {
		total += endpoint.Inflight
	}
	return total
}

func (d *Daemon) ask(t testing.TB, told any, command string) {
	t.Helper()
	output, err := exec.Command(d.ctl, "--socket", d.Socket, "--json", command).Output()
	if err == nil {
		err = json.Unmarshal(output, told)
	}
	if err != nil {
		t.Fatalf("pickctl %s: %v", command, err)
	}
}

// An Engine is an enginesim.
type Engine struct {
	Address string
	command *exec.Cmd
}

var listening = regexp.MustCompile(`listening on (\d+)`)

// StartEngine starts one that serves "demo"; see enginesim --help for flags.
func StartEngine(t testing.TB, flags ...string) *Engine {
	t.Helper()
	command, lines := Start(t, Binary(t, "enginesim"), flags...)
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			return &Engine{Address: "127.0.0.1:" + found[1], command: command}
		}
	}
	t.Fatal("the engine does not say where it listens")
	return nil
}

// Kill ends the engine as a crash does.
func (e *Engine) Kill() {
	e.command.Process.Kill()
	e.command.Wait()
}

// FreePort is a port that nobody listened on a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port)
	return number
}
