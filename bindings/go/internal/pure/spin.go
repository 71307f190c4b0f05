// How long to look for an answer before sleeping, as in the package above.

package pure

import "time"

type spin struct {
	now     time.Duration
	skipped int
}

const (
	spinLongest  = 20 * time.Microsecond
	spinShortest = 2 * time.Microsecond
	spinEvery    = 64
)

func newSpin() spin { return spin{now: spinLongest} }

func (s *spin) budget() time.Duration {
	if s.now >= spinShortest {
		return s.now
	}
	if s.skipped++; s.skipped < spinEvery {
		return 0
	}
	s.skipped = 0
	return spinLongest
}

func (s *spin) learn(found bool) {
	if found {
		s.now = spinLongest
	} else {
		s.now /= 2
	}
}
