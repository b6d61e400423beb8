//! One bucket by hand: take from it, look at it, give back, forget it.

use std::io::{Write, stdout};

use balde::{Acquire, Decision, Limiter, Limits};

use crate::args::{Bucket, Check, Peek, Refund, Reset};
use crate::duration::say;
use crate::exit::{Failure, Verdict};
use crate::figures::Figures;

/// `balde check`
pub(crate) async fn check(args: Check) -> Result<Verdict, Failure> {
    let limiter = limiter(&args.bucket, args.limits.parsed()?)?;
    // A person who asks for one bucket wants to hear of a server that does not answer.
    let request = Acquire::cost(args.cost).max_wait(args.max_wait).no_fallback();
    let decision = limiter.acquire_with(&args.bucket.key, request).await?;
    tell(&decision, args.bucket.json, "admitted", "denied")
}

/// `balde peek`
pub(crate) async fn peek(args: Peek) -> Result<Verdict, Failure> {
    let limiter = limiter(&args.bucket, args.limits.parsed()?)?;
    let decision = limiter.peek_with(&args.bucket.key, Acquire::cost(args.cost)).await?;
    tell(&decision, args.bucket.json, "would be admitted", "would be denied")
}

/// `balde refund`
pub(crate) async fn refund(args: Refund) -> Result<Verdict, Failure> {
    let limiter = limiter(&args.bucket, args.limits.parsed()?)?;
    let remaining = limiter.refund(&args.bucket.key, args.tokens).await?;
    match args.bucket.json {
        true => writeln!(stdout(), r#"{{"ok": true, "remaining": {remaining}}}"#)?,
        false => writeln!(stdout(), "given back: {remaining} left")?,
    }
    Ok(Verdict::Yes)
}

/// `balde reset`
pub(crate) async fn reset(args: Reset) -> Result<Verdict, Failure> {
    // Forgetting a bucket is the same under whatever limits it was written.
    let limiter = limiter(&args.bucket, "1/s".parse()?)?;
    limiter.reset(&args.bucket.key).await?;
    match args.bucket.json {
        true => writeln!(stdout(), r#"{{"ok": true}}"#)?,
        false => writeln!(stdout(), "forgotten: the bucket is full")?,
    }
    Ok(Verdict::Yes)
}

fn limiter(bucket: &Bucket, limits: Limits) -> Result<Limiter, Failure> {
    let builder = Limiter::builder(&bucket.name).limits(limits).store(bucket.server()?);
    Ok(builder.prefix(&bucket.prefix).deadline(bucket.deadline).build()?)
}

fn tell(decision: &Decision, json: bool, yes: &str, no: &str) -> Result<Verdict, Failure> {
    match json {
        true => writeln!(stdout(), "{}", object(decision))?,
        false => writeln!(stdout(), "{}", sentence(decision, yes, no))?,
    }
    Ok(if decision.allowed { Verdict::Yes } else { Verdict::No })
}

fn object(decision: &Decision) -> String {
    // None of the three texts holds anything that JSON would have to escape.
    let reason = decision.reason.map_or("null".into(), |reason| format!("{:?}", reason.as_str()));
    let (limit, source) = (decision.limit.to_string(), decision.source.as_str());
    format!(r#"{{{}, "limit": {limit:?}, "source": {source:?}, "reason": {reason}}}"#, Figures(decision).members())
}

fn sentence(decision: &Decision, yes: &str, no: &str) -> String {
    let limit = decision.limit;
    if decision.allowed {
        let waited = if decision.wait.is_zero() { String::new() } else { format!(" after {}", say(decision.wait)) };
        return format!("{yes}{waited}: {} left, full again in {}", decision.remaining, say(decision.reset_after));
    }
    match decision.retry_after {
        Some(span) => format!("{no}: try again in {} ({limit})", say(span)),
        None => format!("{no}: never possible, it costs more than a full bucket holds ({limit})"),
    }
}
