//! How long to look for an answer before waiting for the descriptor. Pure: it is told what
//! happened.

use std::time::Duration;

/// The budget of a pick that is alone in its queue. A daemon that is awake answers in a few
/// microseconds, and both going to sleep and being woken take longer. Looking that fails costs its
/// whole time, so then there is less of it, down to a look now and then.
pub(crate) struct Spin {
    longest: Duration, // zero: never
    now: Duration,
    skipped: u32,
}

const LONGEST_DEFAULT: Duration = Duration::from_micros(20);
const SHORTEST: Duration = Duration::from_micros(2);
const PICKS_PER_TRY: u32 = 64; // while looking does not pay

impl Spin {
    pub(crate) fn new(wanted: Option<Duration>) -> Spin {
        let longest = wanted.unwrap_or(LONGEST_DEFAULT);
        Spin { longest, now: longest, skipped: 0 }
    }

    /// Of the next pick; zero: do not look.
    pub(crate) fn budget(&mut self) -> Duration {
        if self.longest.is_zero() || self.now >= SHORTEST {
            return self.now;
        }
        self.skipped += 1;
        if self.skipped < PICKS_PER_TRY {
            return Duration::ZERO;
        }
        self.skipped = 0;
        self.longest
    }

    /// One success restores the whole budget, each failure halves it.
    pub(crate) fn learn(&mut self, found: bool) {
        self.now = if found { self.longest } else { self.now / 2 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_that_fails_ends_and_is_tried_again_now_and_then() {
        let mut spin = Spin::new(None);
        let mut looks = 0;
        for _ in 0..4 + 10 * PICKS_PER_TRY {
            if !spin.budget().is_zero() {
                looks += 1;
                spin.learn(false);
            }
        }
        assert_eq!(looks, 4 + 10);
        while spin.budget().is_zero() {}
        spin.learn(true);
        assert_eq!(spin.budget(), LONGEST_DEFAULT);
    }

    #[test]
    fn who_wants_no_looking_gets_none() {
        let mut spin = Spin::new(Some(Duration::ZERO));
        for _ in 0..2 * PICKS_PER_TRY {
            assert!(spin.budget().is_zero());
            spin.learn(false);
        }
    }
}
