//! Order statistics: the machines that benchmarks run on are shared, and a mean would follow their worst moment.

/// The middle of some measurements and the range that the middle half of them lies in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Quartiles by linear interpolation; not a number where there are no measurements.
    pub(crate) fn of(measured: &[f64]) -> Self {
        let mut sorted = measured.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
            let place = part * last as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Spread { low: at(0.25), median: at(0.5), high: at(0.75) }
    }
}

/// The median of what each round of one contestant cost against the same round of another: a shared machine changes its
/// pace for seconds at a time, which a ratio of two medians would take for a difference.
pub(crate) fn ratio(measured: &[f64], reference: &[f64]) -> f64 {
    let rounds: Vec<f64> = measured.iter().zip(reference).map(|(one, other)| one / other).collect();
    Spread::of(&rounds).median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0, 5.0]), Spread { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(Spread::of(&[1.0, 2.0]), Spread { low: 1.25, median: 1.5, high: 1.75 });
        assert!(Spread::of(&[]).median.is_nan());
    }

    #[test]
    fn a_change_of_pace_is_no_difference() {
        assert_eq!(ratio(&[1.0, 2.0, 20.0], &[2.0, 4.0, 20.0]), 0.5);
    }
}
