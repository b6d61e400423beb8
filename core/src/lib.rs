#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod acquire;
mod breaker;
mod bucket;
mod clock;
mod config;
mod decision;
mod error;
mod in_force;
mod key;
mod limit;
mod limiter;
mod limits;
mod runtime;
mod simulation;
mod stats;
mod store;

pub use acquire::Acquire;
pub use breaker::{
    CallError, CallNotPermitted, CallOutcome, CallPermit, CircuitBreaker, CircuitBreakerConfig, CircuitBreakerSnapshot,
    CircuitBreakerState, CircuitBreakerTransition, SlidingWindow,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::Builder;
pub use decision::{Decision, Reason, Source};
pub use error::{Error, ErrorKind, Result};
pub use limit::Limit;
pub use limiter::Limiter;
pub use limits::Limits;
pub use simulation::Simulation;
pub use stats::Stats;
pub use store::{OnFailure, StoreUrl};
