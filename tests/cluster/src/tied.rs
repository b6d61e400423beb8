//! Child processes that do not outlive this process.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

type Job = (Command, SyncSender<io::Result<Child>>);

/// Starts `command` as a child that the kernel kills (SIGKILL) when this process ends in whatever way, SIGKILL included.
///
/// Linux only; elsewhere it is a plain spawn and whoever holds the [`Child`] must kill it. The kernel ties a child to
/// the *thread* that forked it, not to the process, so all children are forked by one thread that never ends: the
/// caller's thread may. Fails as [`Command::spawn`] does.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = channel();
        // When no thread can be started, the inbox is dropped with the closure and every send below fails.
        let _ = thread::Builder::new().name("testbed-spawner".into()).spawn(move || serve(inbox));
        jobs
    });
    die_with_parent(&mut command);
    let (reply, answer) = sync_channel(1);
    spawner.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// Sends `signal` (a number of `libc`) to the process `pid`.
///
/// Meant for children that were not waited for yet: a number that was waited for may belong to a stranger by now.
/// Fails when there is no such process, or when it belongs to another user.
pub fn signal(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: kill touches no memory of ours.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Says whether the child `pid` has come to a stop by SIGSTOP that nobody was told of yet.
pub(crate) fn has_stopped(pid: u32) -> io::Result<bool> {
    // SAFETY: siginfo_t is plain data; waitid fills the one it is given, and all zero means that nothing happened.
    let (result, told) = unsafe {
        let mut told: libc::siginfo_t = std::mem::zeroed();
        (libc::waitid(libc::P_PID, pid, &mut told, libc::WSTOPPED | libc::WNOHANG), told)
    };
    if result == 0 { Ok(told.si_signo == libc::SIGCHLD) } else { Err(io::Error::last_os_error()) }
}

fn serve(inbox: Receiver<Job>) {
    for (mut command, reply) in inbox {
        // A caller that has gone away drops the child unseen; there is none, since callers wait for the answer.
        let _ = reply.send(command.spawn());
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts children could not be started")
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec, where only async-signal-safe calls are allowed: prctl and getppid
    // are system calls, and an io::Error from a number allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // A parent that died before the call above will send no signal any more.
            if u32::try_from(libc::getppid()) != Ok(parent) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = thread::spawn(move || spawn(cat)).join().unwrap().unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        drop(child.stdin.take());
        // Ended by the end of its input, not by a signal.
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }

    #[test]
    fn a_missing_program_is_the_callers_error() {
        let error = spawn(Command::new("no-such-program-anywhere")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
