//! A decision written for programs: whole microseconds, in the notation of the traces.

use std::fmt::{self, Display, Formatter};

use balde::Decision;

/// The figures of a decision as one JSON object, `": "` and `", "` between, as every trace has them.
pub(crate) struct Figures<'a>(pub(crate) &'a Decision);

impl Figures<'_> {
    /// The members of the object, without its braces.
    pub(crate) fn members(&self) -> String {
        let decision = self.0;
        let retry_after = decision.retry_after.map_or("null".into(), |span| span.as_micros().to_string());
        format!(
            r#""allowed": {}, "remaining": {}, "retry_after": {retry_after}, "reset_after": {}, "wait": {}"#,
            decision.allowed,
            decision.remaining,
            decision.reset_after.as_micros(),
            decision.wait.as_micros(),
        )
    }
}

impl Display for Figures<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.members())
    }
}
