//! The limits of one bucket: one or several, decided together, known by their periods.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, ErrorKind, Result};
use crate::limit::Limit;

/// One to [`Limits::MOST`] limits that a request must all pass, in one bucket.
///
/// Cheap to clone. Read as text, the limits are separated by `;`: `"10/s burst 20; 10000/d"`.
///
/// ```
/// use balde::{Limit, Limits};
/// let limits: Limits = "10/s burst 20; 10000/d".parse()?;
/// assert_eq!(limits.len(), 2);
/// assert_eq!(limits, Limits::new(["10/s burst 20".parse()?, "10000/d".parse()?])?);
/// # Ok::<(), balde::Error>(())
/// ```
#[derive(Clone)]
pub struct Limits(Arc<SmallVec<[Limit; 1]>>);

impl Limits {
    /// The most limits that one bucket takes.
    pub const MOST: usize = 16;

    /// The limits in the order given, which only matters for which of two equally binding ones is named.
    ///
    /// # Errors
    /// `invalid_limit` for no limit, more than [`Limits::MOST`], or two limits of one period.
    pub fn new(limits: impl IntoIterator<Item = Limit>) -> Result<Self> {
        let limits: SmallVec<[Limit; 1]> = limits.into_iter().collect();
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidLimit, message));
        if limits.is_empty() || limits.len() > Limits::MOST {
            return invalid(format!("a bucket takes 1 to {} limits, not {}", Limits::MOST, limits.len()));
        }
        for (i, limit) in limits.iter().enumerate() {
            if let Some(same) = limits[..i].iter().find(|other| other.period() == limit.period()) {
                return invalid(format!("{same} and {limit} have the same period; keep the one that binds"));
            }
        }
        Ok(Limits(Arc::new(limits)))
    }

    /// Whether the two are one allocation: the quick way to know that nothing changed.
    pub(crate) fn same(&self, other: &Limits) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Each limit changed by `change`, which leaves their order of periods and so keeps them apart.
    pub(crate) fn mapped(&self, change: impl Fn(&Limit) -> Limit) -> Limits {
        Limits(Arc::new(self.iter().map(change).collect()))
    }

    /// The caller's limits with others, of other periods, behind them: what a bucket holds after
    /// callers with different limits met in it.
    pub(crate) fn followed_by(&self, others: &[Limit]) -> Limits {
        if others.is_empty() { self.clone() } else { Limits(Arc::new(self.iter().chain(others).copied().collect())) }
    }
}

impl Deref for Limits {
    type Target = [Limit];

    fn deref(&self) -> &[Limit] {
        &self.0
    }
}

impl PartialEq for Limits {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || self.0 == other.0
    }
}

impl Eq for Limits {}

impl From<Limit> for Limits {
    fn from(limit: Limit) -> Self {
        Limits(Arc::new(smallvec![limit]))
    }
}

impl From<&Limits> for Limits {
    fn from(limits: &Limits) -> Self {
        limits.clone()
    }
}

impl FromStr for Limits {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Limits::new(text.split(';').map(str::parse).collect::<Result<Vec<Limit>>>()?)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, limit) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            limit.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limits({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_and_prints_back() {
        let limits: Limits = "10/s burst 20;1000/d".parse().unwrap();
        assert_eq!(limits.to_string(), "10/s burst 20; 1000/d");
        assert_eq!(limits.to_string().parse::<Limits>().unwrap(), limits);
    }

    #[test]
    fn none_many_and_twins_are_refused() {
        for text in ["", ";", "1/s;", "60/m; 5/60s"] {
            assert_eq!(text.parse::<Limits>().expect_err(text).code(), "invalid_limit");
        }
        let many = (1..=17).map(|k| format!("1/{k}s")).collect::<Vec<_>>().join(";");
        assert!(many.parse::<Limits>().is_err());
    }
}
