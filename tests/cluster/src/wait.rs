use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// Long enough for a loaded machine; a healthy one needs a tiny part of it.
pub(crate) const END: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(10);

/// Looks again and again, every 10 ms, until `look` answers `Ok`, and returns what it answered.
///
/// An `Err` says why the condition is not true yet. After `end` the last such reason becomes [`Error::Late`];
/// `look` is called at least once, and once more after the end has passed.
pub fn until<T>(end: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> Result<T, Error> {
    let start = Instant::now();
    loop {
        // Read before looking, so that a thread that was not scheduled for long still gets its last look.
        let over = start.elapsed() >= end;
        match look() {
            Ok(value) => return Ok(value),
            Err(last) if over => {
                return Err(Error::Late { what: what.into(), last });
            }
            Err(_) => thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_comes_true_gives_its_value() {
        let mut looks = 0;
        let value = until(END, "three looks", || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err(format!("{looks} looks")) }
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn the_end_tells_the_last_reason() {
        let error = until(Duration::ZERO, "the moon", || Err::<(), _>("it is day".into())).unwrap_err();
        assert_eq!(error.to_string(), "waited too long for the moon: it is day");
    }
}
