// Bench compares the Go client with an event loop in C, and with a client in pure Go: CPU time of a pick and its
// report, at equal numbers outstanding, in one process and one run against one daemon of its own. Prints a table.
//
//	go run ./internal/bench [-outstanding 1,32,1000] [-seconds 1] [-rounds 5] [-daemon PATH]
package main

// #cgo pkg-config: pickd
// #include <stdlib.h>
// #include "loop.h"
import "C"

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/bindings/go/internal/pure"
)

const (
	endpoints    = 16
	promptCount  = 1000
	promptTokens = 1000
)

func main() {
	log.SetFlags(0)
	outstanding := flag.String("outstanding", "1,32,1000", "numbers of picks outstanding")
	seconds := flag.Float64("seconds", 1, "length of one slice")
	rounds := flag.Int("rounds", 5, "slices of each; the medians are shown")
	program := flag.String("daemon", "../../build/release/bin/pickd", "the daemon's program")
	busy := flag.Bool("busy", false, "the Go client and the daemon poll busily")
	profile := flag.String("profile", "", "write a CPU profile of the Go slices to this file")
	profilePure := flag.String("profile-pure", "", "the same of the slices in pure Go")
	flag.Parse()

	socket, stop := startDaemon(*program, *busy)
	defer stop()
	options := C.pickd_options{struct_size: C.sizeof_pickd_options, socket_path: C.CString(socket)}
	var inC *C.pickd_client
	if code := C.pickd_open(&options, &inC); code != 0 {
		log.Fatal(C.GoString(C.pickd_strerror(code)))
	}
	inGo, err := pickd.Open(pickd.Options{Socket: socket, BusyPoll: *busy})
	if err != nil {
		log.Fatal(err)
	}
	defer inGo.Close()
	inPure, err := pure.Open(socket)
	if err != nil {
		log.Fatal(err)
	}
	defer inPure.Close()
	prompts := makePrompts()
	raw := inCMemory(prompts)

	fmt.Println("outstanding   C us/pick   Go us/pick   pure us/pick   Go - C us   pure - C us   " +
		"C picks/s   Go picks/s   pure picks/s")
	for _, word := range strings.Split(*outstanding, ",") {
		count, err := strconv.Atoi(word)
		if err != nil {
			log.Fatal(err)
		}
		duration := time.Duration(*seconds * float64(time.Second))
		var c, g, p samples
		for range *rounds {
			c.add(measure(func() int64 {
				picks := C.bench_loop(inC, C.uint32_t(count), raw, promptCount, C.int64_t(duration))
				if picks < 0 {
					log.Fatal(C.GoString(C.pickd_strerror(C.int(picks))))
				}
				return int64(picks)
			}))
			g.add(profiled(*profile, func() int64 { return loop(count, duration, throughC(inGo, prompts)) }))
			p.add(profiled(*profilePure, func() int64 { return loop(count, duration, throughGo(inPure, prompts)) }))
		}
		fmt.Printf("%11d   %9.2f   %10.2f   %12.2f   %9.2f   %11.2f   %9.0f   %10.0f   %12.0f\n", count, c.cpu(),
			g.cpu(), p.cpu(), g.cpu()-c.cpu(), p.cpu()-c.cpu(), c.rate(), g.rate(), p.rate())
	}
}

// An asker makes what one goroutine does: the pick and report of its next prompt.
type asker func() func(prompt int) error

func throughC(client *pickd.Client, prompts []string) asker {
	ctx := context.Background()
	return func() func(int) error {
		text := make([]string, 1)
		return func(prompt int) error {
			text[0] = prompts[prompt]
			pick, err := client.Pick(ctx, pickd.Request{Model: "m", Text: text})
			if err != nil {
				return err
			}
			return client.Report(ctx, pickd.Report{Ticket: pick.Ticket, Kind: pickd.Done})
		}
	}
}

func throughGo(client *pure.Client, prompts []string) asker {
	const done = 3
	ctx := context.Background()
	return func() func(int) error {
		request := pure.Request{Model: "m", Text: make([]string, 1)}
		return func(prompt int) error {
			request.Text[0] = prompts[prompt]
			pick, err := client.Pick(ctx, &request)
			if err != nil {
				return err
			}
			return client.Report(&pure.Report{Ticket: pick.Ticket, Kind: done, PromptTokens: pure.Unknown,
				CachedTokens: pure.Unknown, OutputTokens: pure.Unknown})
		}
	}
}

// loop is what bench_loop is, by goroutines.
func loop(outstanding int, duration time.Duration, made asker) int64 {
	var picks atomic.Int64
	var stop atomic.Bool
	var wait sync.WaitGroup
	for at := range outstanding {
		wait.Add(1)
		go func() {
			defer wait.Done()
			done, ask := int64(0), made()
			for next := at; !stop.Load(); next += outstanding {
				if err := ask(next % promptCount); err != nil {
					log.Fatal(err)
				}
				done++
			}
			picks.Add(done)
		}()
	}
	time.Sleep(duration)
	stop.Store(true)
	wait.Wait()
	return picks.Load()
}

// ---- Measuring -----------------------------------------------------------------------------------

type sample struct{ cpuMicro, picksPerSecond float64 }
type samples []sample

func (s *samples) add(one sample) { *s = append(*s, one) }

func (s samples) median(of func(sample) float64) float64 {
	values := make([]float64, len(s))
	for at, one := range s {
		values[at] = of(one)
	}
	sort.Float64s(values)
	return values[len(values)/2]
}

func (s samples) cpu() float64 { return s.median(func(one sample) float64 { return one.cpuMicro }) }
func (s samples) rate() float64 {
	return s.median(func(one sample) float64 { return one.picksPerSecond })
}

// measure tells what one pick of a run took of this process's CPU time, and how many there were a second.
func measure(run func() int64) sample {
	from, cpuFrom := time.Now(), cpu()
	picks := float64(run())
	return sample{float64((cpu() - cpuFrom).Nanoseconds()) / 1e3 / picks, picks / time.Since(from).Seconds()}
}

// profiled measures, and writes a CPU profile where a file is named.
func profiled(path string, run func() int64) sample {
	if path != "" {
		file, err := os.Create(path)
		if err != nil {
			log.Fatal(err)
		}
		pprof.StartCPUProfile(file)
		defer pprof.StopCPUProfile()
	}
	return measure(run)
}

func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// ---- What is measured with -----------------------------------------------------------------------

func makePrompts() []string {
	prompts := make([]string, promptCount)
	for at := range prompts {
		var text strings.Builder
		for text.Len() < 4*promptTokens {
			fmt.Fprintf(&text, "prompt %d says %d; ", at, text.Len())
		}
		prompts[at] = text.String()[:4*promptTokens]
	}
	return prompts
}

func inCMemory(prompts []string) *C.bench_prompt {
	raw := (*C.bench_prompt)(C.calloc(C.size_t(len(prompts)), C.sizeof_bench_prompt))
	for at, prompt := range prompts {
		unsafe.Slice(raw, len(prompts))[at] = C.bench_prompt{C.CString(prompt), C.size_t(len(prompt))}
	}
	return raw
}

func startDaemon(program string, busy bool) (string, func()) {
	directory, err := os.MkdirTemp("", "pickd-go-bench")
	if err != nil {
		log.Fatal(err)
	}
	socket, config := filepath.Join(directory, "s"), filepath.Join(directory, "pickd.yaml")
	text := fmt.Sprintf("listen: {socket: %s}\nstate: {path: %s/state, size_mib: 64}\nscrape: {enabled: false}\n"+
		"workers: {count: 1, busy_poll: %t}\nlog: {level: warn}\nendpoints:\n", socket, directory, busy)
	for at := range endpoints {
		text += fmt.Sprintf("  - {name: engine-%d, address: \"127.0.0.1:%d\"}\n", at, 9000+at)
	}
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
		connection, err := net.Dial("unixpacket", socket)
		if err == nil {
			connection.Close()
			break
		}
		if time.Now().After(until) {
			log.Fatalf("the daemon does not listen: %v", err)
		}
	}
	return socket, func() {
		daemon.Process.Kill()
		daemon.Wait()
		os.RemoveAll(directory)
	}
}
