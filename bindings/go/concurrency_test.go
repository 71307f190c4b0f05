// Many goroutines, cancelled and late picks, daemons that die: nothing is lost, leaked or counted
// twice.

package pickd_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
)

// threads of this process, by the kernel's word.
func threads(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func inEveryMode(t *testing.T, test func(t *testing.T, options pickd.Options)) {
	t.Run("events", func(t *testing.T) { test(t, pickd.Options{}) })
	t.Run("several queues", func(t *testing.T) { test(t, pickd.Options{Queues: 4, Depth: 64}) })
	t.Run("busy", func(t *testing.T) { test(t, pickd.Options{BusyPoll: true}) })
}

func TestTenThousandGoroutinesPickAtOnceOnFewThreads(t *testing.T) {
	const goroutines = 10_000
	daemon := startDaemon(t, "reservations: {per_uid_max: 60000}")
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		client := open(t, daemon, options)
		daemon.stop(t) // so that all of them wait at once
		before := threads(t)
		ctx := soon(t)
		var wait sync.WaitGroup
		var failures, started atomic.Int32
		for at := range goroutines {
			wait.Add(1)
			go func() {
				defer wait.Done()
				started.Add(1)
				pick, err := client.Pick(context.Background(), pickd.Request{Model: "m", Text: []string{prompt(at, 200)}})
				if err == nil {
					err = client.Report(ctx, pickd.Report{Ticket: pick.Ticket, Kind: pickd.Done})
				}
				if err != nil && failures.Add(1) == 1 {
					t.Error(err)
				}
			}()
		}
		for started.Load() < goroutines {
			runtime.Gosched()
		}
		during := threads(t)
		daemon.goOn(t)
		wait.Wait()
		if grown := during - before; grown > runtime.GOMAXPROCS(0)+8 {
			t.Errorf("%d threads more for %d waiting goroutines", grown, goroutines)
		}
		if failures.Load() > 0 {
			t.Errorf("%d of %d failed", failures.Load(), goroutines)
		}
	})
}

func TestACancelledContextTakesThePickBack(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		client := open(t, daemon, options)
		daemon.stop(t)
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error)
		const picks = 100 // more than one queue of depth 64 has
		for range picks {
			go func() {
				_, err := client.Pick(ctx, pickd.Request{Model: "m", Text: []string{prompt(1, 64)}})
				failed <- err
			}()
		}
		cancel()
		for range picks {
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
		daemon.goOn(t)
		mustPick(t, client, pickd.Request{Model: "m"}) // every place is free again
	})
}

func TestADeadlineGivesADegradedPickWhenTheDaemonStandsStill(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		client := open(t, daemon, options)
		daemon.stop(t)
		defer daemon.goOn(t)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		pick, err := client.Pick(ctx, pickd.Request{Model: "m", Text: []string{prompt(4, 640)}})
		// On a machine that is late the context may end first; nothing else may happen.
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil || !pick.Degraded || pick.Reason != pickd.ReasonDegraded {
			t.Errorf("%+v, %v", pick, err)
		}
	})
}

func TestAnEndedContextIsNotSubmitted(t *testing.T) {
	client := open(t, startDaemon(t), pickd.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.Pick(ctx, pickd.Request{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPicksGoOnWhileTheDaemonIsAwayAndWhenItIsBack(t *testing.T) {
	daemon := startDaemon(t)
	// One queue: what it tells the daemon that is back comes before its picks.
	client := open(t, daemon, pickd.Options{Queues: 1})
	text := prompt(5, 640)
	ended := mustPick(t, client, pickd.Request{Model: "m", Text: []string{text}})
	before := mustPick(t, client, pickd.Request{Model: "m", Text: []string{text}})
	daemon.kill()
	pick := mustPick(t, client, pickd.Request{Model: "m", Text: []string{text}})
	if !pick.Degraded || len(pick.Endpoints) == 0 {
		t.Errorf("%+v", pick)
	}
	for _, kind := range []pickd.ReportKind{pickd.FirstToken, pickd.Done} {
		if err := client.Report(soon(t), pickd.Report{Ticket: pick.Ticket, Kind: kind}); err != nil {
			t.Errorf("report on a degraded pick: %v", err)
		}
	}
	first := pickd.Report{Ticket: before.Ticket, Kind: pickd.FirstToken}
	if err := client.Report(soon(t), first); !errors.Is(err, pickd.ErrNotConnected) {
		t.Errorf("the first token of another pick: %v", err)
	}
	end := pickd.Report{Ticket: ended.Ticket, Kind: pickd.Done}
	if err := client.Report(soon(t), end); err != nil {
		t.Errorf("the end of another pick: %v", err)
	}
	daemon.start(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if pick := mustPick(t, client, pickd.Request{Model: "m", Text: []string{text}}); !pick.Degraded {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("still degraded")
		}
	}
	if err := client.ReportAndWait(soon(t), end); !errors.Is(err, pickd.ErrStale) {
		t.Errorf("what was ended meanwhile is still reserved: %v", err)
	}
	if err := client.ReportAndWait(soon(t), pickd.Report{Ticket: before.Ticket, Kind: pickd.Done}); err != nil {
		t.Errorf("report when it is back: %v", err)
	}
}

func TestWhatIsOutstandingWhenTheDaemonDiesIsAnswered(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		if daemon.cmd == nil {
			daemon.start(t)
		}
		client := open(t, daemon, options)
		daemon.stop(t)
		type answer struct {
			pick pickd.Pick
			err  error
		}
		answers := make(chan answer)
		const picks = 200
		for at := range picks {
			go func() {
				pick, err := client.Pick(context.Background(), pickd.Request{Model: "m", Text: []string{prompt(at, 640)}})
				answers <- answer{pick, err}
			}()
		}
		daemon.kill()
		for range picks {
			if got := <-answers; got.err != nil || len(got.pick.Endpoints) == 0 {
				t.Errorf("%+v, %v", got.pick, got.err)
			}
		}
	})
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		client := open(t, daemon, options)
		daemon.stop(t)
		failed := make(chan error)
		const picks = 100
		for range picks {
			go func() {
				_, err := client.Pick(context.Background(), pickd.Request{Model: "m"})
				failed <- err
			}()
		}
		// The daemon must go on for Close: it takes back what is outstanding.
		closed := make(chan struct{})
		go func() {
			client.Close()
			close(closed)
		}()
		for range picks {
			if err := <-failed; !errors.Is(err, pickd.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		}
		daemon.goOn(t)
		<-closed
		if err := client.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := client.Pick(soon(t), pickd.Request{}); !errors.Is(err, pickd.ErrClosed) {
			t.Errorf("a pick of a closed client: %v", err)
		}
		if err := client.ReportAndWait(soon(t), pickd.Report{}); !errors.Is(err, pickd.ErrClosed) {
			t.Errorf("a report of a closed client: %v", err)
		}
		if err := client.Report(soon(t), pickd.Report{}); !errors.Is(err, pickd.ErrClosed) {
			t.Errorf("a report of a closed client: %v", err)
		}
	})
}

func TestCloseMayComeInTheMiddleOfEverything(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		for range 5 {
			client := open(t, daemon, options)
			ctx := soon(t)
			var wait sync.WaitGroup
			begun := make(chan struct{}, 1)
			for at := range 40 {
				wait.Add(1)
				go func() {
					defer wait.Done()
					for {
						pick, err := client.Pick(ctx, pickd.Request{Model: "m", Text: []string{prompt(at, 64)}})
						if err == nil {
							err = client.Report(ctx, pickd.Report{Ticket: pick.Ticket, Kind: pickd.Done})
						}
						if errors.Is(err, pickd.ErrClosed) {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						select {
						case begun <- struct{}{}:
						default:
						}
					}
				}()
			}
			<-begun
			client.Close()
			wait.Wait()
		}
	})
}

// Picks that are alone look for their answers, others wait: each way into the other must leave somebody who is
// woken.
func TestFewGoroutinesNeverWaitForEver(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		client := open(t, daemon, options)
		ctx := soon(t)
		for goroutines := 1; goroutines <= 6; goroutines++ {
			var wait sync.WaitGroup
			for at := range goroutines {
				wait.Add(1)
				go func() {
					defer wait.Done()
					for range 100 {
						pick, err := client.Pick(ctx, pickd.Request{Model: "m", Text: []string{prompt(at, 64)}})
						if err == nil {
							err = client.Report(ctx, pickd.Report{Ticket: pick.Ticket, Kind: pickd.Done})
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				}()
			}
			wait.Wait()
		}
	})
}

func TestLongPromptsThatDoNotFitTheRingTogetherAllGetAnAnswer(t *testing.T) {
	const picks = 200 // of 4 KiB of keys each: 800 KiB through a ring of 128
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		client := open(t, daemon, options)
		ctx := soon(t)
		var wait sync.WaitGroup
		for at := range picks {
			wait.Add(1)
			go func() {
				defer wait.Done()
				if _, err := client.Pick(ctx, pickd.Request{Model: "m", Text: []string{prompt(at, 32_000)}}); err != nil {
					t.Error(err)
				}
			}()
		}
		wait.Wait()
	})
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	daemon := startDaemon(t)
	inEveryMode(t, func(t *testing.T, options pickd.Options) {
		once := func() {
			client := open(t, daemon, options)
			var wait sync.WaitGroup
			for range 100 {
				wait.Add(1)
				go func() {
					defer wait.Done()
					mustPick(t, client, pickd.Request{Model: "m", Text: []string{prompt(6, 640)}})
				}()
			}
			wait.Wait()
			client.Close()
		}
		once() // what the runtime opens for itself is there after this
		before := descriptors(t)
		for range 20 {
			once()
		}
		if after := descriptors(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
		// A goroutine that has said its last word may not have returned yet.
		for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if !strings.Contains(string(stacks), "(*queue)") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a goroutine is left:\n%s", stacks)
			}
		}
	})
}
