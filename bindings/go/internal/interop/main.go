// Interop is the Go client of tests/interop_test.py: it runs the steps of tests/interop/scenario.txt, which says
// what they mean.
//
//	interop SOCKET SCRIPT REPETITIONS cgo|pure
//
// It prints "ready", waits for a line, runs the script so often, eight repetitions at once, and prints a line for
// each step.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/bindings/go/internal/pure"
)

const atOnce = 8

// A chooser is what the script needs of a client.
type chooser interface {
	Pick(context.Context, pickd.Request) (pickd.Pick, error)
	ReportAndWait(context.Context, pickd.Report) error
	Close() error
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: interop SOCKET SCRIPT REPETITIONS cgo|pure")
	}
	steps, err := readScript(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	repetitions, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	client, err := open(os.Args[4], os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		log.Fatal(err)
	}
	var print sync.Mutex
	var wait sync.WaitGroup
	left := make(chan struct{}, atOnce)
	for range repetitions {
		left <- struct{}{}
		wait.Add(1)
		go func() {
			defer wait.Done()
			said := run(client, steps)
			print.Lock()
			fmt.Print(said)
			print.Unlock()
			<-left
		}()
	}
	wait.Wait()
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
}

func open(mode, socket string) (chooser, error) {
	switch mode {
	case "cgo":
		return pickd.Open(pickd.Options{Socket: socket})
	case "pure":
		client, err := pure.Open(socket)
		return pureClient{client}, err
	}
	return nil, fmt.Errorf("%s: there are cgo and pure", mode)
}

// run is one repetition; it returns its lines.
func run(client chooser, steps []step) string {
	var said strings.Builder
	tickets := map[string]pickd.Ticket{}
	ctx := context.Background()
	for _, s := range steps {
		if s.kind == 0 {
			pick, err := client.Pick(ctx, s.request)
			if err != nil {
				fmt.Fprintf(&said, "pick %s status=%d\n", s.name, status(err))
				continue
			}
			tickets[s.name] = pick.Ticket
			fmt.Fprintf(&said, "pick %s status=0 winner=%s address=%s match=%d prompt_tokens=%d cut=%d degraded=%d endpoints=%d\n",
				s.name, pick.Name(), pick.Address(), pick.Endpoints[0].MatchTokens, pick.PromptTokens,
				number(pick.Cut), number(pick.Degraded), len(pick.Endpoints))
			continue
		}
		report := s.report
		report.Ticket = tickets[s.name]
		fmt.Fprintf(&said, "report %s %s status=%d\n", s.name, s.kindName, status(client.ReportAndWait(ctx, report)))
	}
	return said.String()
}

func status(err error) int {
	var code pickd.Code
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return -int(code)
	}
	log.Fatal(err)
	return 0
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}
