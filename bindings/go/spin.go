// How long to look for an answer before sleeping. Pure: time comes in as an argument.

package pickd

import "time"

// A spin is how long a pick that is alone in its queue looks for its answer before it waits for the descriptor.
// A daemon that is awake answers in a few microseconds, and both going to sleep and being woken take
// longer. Looking that fails costs its whole time, so then there is less of it, down to a look now and then.
type spin struct {
	longest time.Duration // 0: never
	now     time.Duration
	skipped int
}

const (
	spinDefault  = 20 * time.Microsecond
	spinShortest = 2 * time.Microsecond
	spinEvery    = 64 // picks without a look, before one tries again
)

func newSpin(wanted time.Duration) spin {
	if wanted == 0 {
		wanted = spinDefault
	}
	wanted = max(wanted, 0)
	return spin{longest: wanted, now: wanted}
}

// budget of the next pick; 0: do not look.
func (s *spin) budget() time.Duration {
	if s.longest == 0 {
		return 0
	}
	if s.now >= spinShortest {
		return s.now
	}
	if s.skipped++; s.skipped < spinEvery {
		return 0
	}
	s.skipped = 0
	return s.longest
}

// learn from a look: one success restores the whole budget, each failure halves it.
func (s *spin) learn(found bool) {
	if found {
		s.now = s.longest
	} else {
		s.now /= 2
	}
}
