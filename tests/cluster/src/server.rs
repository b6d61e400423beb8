use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Client, Connection, IntoConnectionInfo, RedisConnectionInfo, RedisError};
use tempfile::TempDir;

use crate::port::{ATTEMPTS, Port};
use crate::{Binary, CommandStats, Error, info, tied, wait};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server on a loopback port; without persistence, killed when dropped.
///
/// Its files are in a temporary folder that goes away with it, unless this process is killed.
#[derive(Debug)]
pub struct Server {
    binary: Binary,
    port: Port,
    args: Vec<String>,
    folder: TempDir,
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    frozen: bool,
}

impl Server {
    /// Starts a server on a free port, alone, and returns once it answers.
    pub fn start(binary: &Binary) -> Result<Self, Error> {
        Self::start_with(binary, &[])
    }

    /// Does the same with further arguments, such as `["--maxmemory", "1mb"]`; they come last and win.
    /// After `["--requirepass", P]` connections and the URL carry the password.
    ///
    /// Fails with [`Error::Died`] and the end of the server's log when it does not like its arguments.
    pub fn start_with(binary: &Binary, args: &[&str]) -> Result<Self, Error> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).into()).collect();
        let launch = || Self::launch(binary, Port::take(false)?, &args);
        Self::ready(launch()?, launch, |server| server)
    }

    /// Waits for the server of what was launched; when that one lost its port to somebody else, launches anew.
    pub(crate) fn ready<T>(
        launched: T,
        launch: impl Fn() -> Result<T, Error>,
        server: impl Fn(&T) -> &Self,
    ) -> Result<T, Error> {
        let mut launched = launched;
        for _ in 0..ATTEMPTS {
            match server(&launched).wait_ready() {
                Err(Error::PortTaken(_)) => launched = launch()?,
                ready => return ready.map(|()| launched),
            }
        }
        Err(Error::NoPort)
    }

    /// Starts a server on `port` without waiting for it.
    pub(crate) fn launch(binary: &Binary, port: Port, args: &[String]) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("balde-testbed-").tempdir();
        let folder = folder.map_err(Error::io("cannot make a temporary folder"))?;
        let process = Mutex::new(None);
        let server = Self { binary: binary.clone(), port, args: args.into(), folder, process };
        *server.process() = Some(server.spawn()?);
        Ok(server)
    }

    /// Waits until this very process answers; a stranger on its port does not count.
    fn wait_ready(&self) -> Result<(), Error> {
        let port = self.port();
        let ready = wait::until(wait::END, &format!("the server on port {port}"), || {
            let Some(pid) = self.living()? else {
                return Ok(Err(self.post_mortem()));
            };
            let info = self.text("INFO", &["server"]).map_err(|error| error.to_string())?;
            match info::field(&info, "process_id") == Some(pid.to_string().as_str()) {
                true => Ok(Ok(())),
                false => Err("another server answers there".into()),
            }
        });
        match ready {
            // No answer at all: the log says more than the client can.
            Err(Error::Late { what, last }) => Err(Error::Late { what, last: format!("{last}\n{}", self.log()) }),
            ready => ready?,
        }
    }

    /// Its port on 127.0.0.1, the same across restarts.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://127.0.0.1:PORT`, or `redis://:PASSWORD@127.0.0.1:PORT` with the password escaped.
    pub fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}", self.credentials(), self.port())
    }

    /// What it runs.
    pub fn binary(&self) -> &Binary {
        &self.binary
    }

    /// A new connection. It gives up connecting after 5 s and waiting for a reply after 20 s, so that a frozen server
    /// cannot hang its caller for ever.
    pub fn connection(&self) -> Result<Connection, Error> {
        self.connect().map_err(Error::redis(format!("cannot connect to port {}", self.port())))
    }

    /// Kills it with SIGKILL and returns when it is gone: its port refuses. Does nothing when it is not running.
    pub fn stop(&self) {
        drop(self.process().take());
    }

    /// Says whether it runs, frozen or not: it was not stopped and did not die by itself.
    pub fn is_running(&self) -> bool {
        self.living().is_ok_and(|pid| pid.is_some())
    }

    /// Says whether it is frozen.
    pub fn is_frozen(&self) -> bool {
        self.process().as_ref().is_some_and(|process| process.frozen)
    }

    /// Stops it in its tracks (SIGSTOP) and returns when it stands still: its connections stay open, its port accepts
    /// as the kernel does, nothing is answered. Does nothing when it is frozen. Fails when it is not running.
    pub fn freeze(&self) -> Result<(), Error> {
        let mut guard = self.process();
        let process = guard.as_mut().ok_or_else(|| self.not_running())?;
        if process.frozen {
            return Ok(());
        }
        let pid = process.child.id();
        tied::signal(pid, libc::SIGSTOP).map_err(Error::io("SIGSTOP"))?;
        let what = format!("the server on port {} to stand still", self.port());
        wait::until(wait::END, &what, || match (tied::has_stopped(pid), process.child.try_wait()) {
            (Ok(true), _) => Ok(Ok(())),
            (_, Ok(Some(_))) => Ok(Err(self.not_running())),
            (Ok(false), _) => Err("it still moves".into()),
            (Err(error), _) => Err(error.to_string()),
        })??;
        process.frozen = true;
        Ok(())
    }

    /// Lets it go on (SIGCONT). Does nothing when it is not frozen. Fails when it is not running.
    pub fn thaw(&self) -> Result<(), Error> {
        let mut guard = self.process();
        let process = guard.as_mut().ok_or_else(|| self.not_running())?;
        if process.frozen {
            tied::signal(process.child.id(), libc::SIGCONT).map_err(Error::io("SIGCONT"))?;
            process.frozen = false;
        }
        Ok(())
    }

    /// Kills it if it runs, starts it again on the same port with the same arguments, and returns once it answers.
    /// It comes back empty; a cluster node still knows its cluster.
    pub fn restart(&self) -> Result<(), Error> {
        wait::until(wait::END, &format!("port {} to be free again", self.port()), || {
            self.stop();
            let started = self.spawn().and_then(|process| {
                *self.process() = Some(process);
                self.wait_ready()
            });
            match started {
                // Not lost for ever, since testbeds leave it alone: some client's connection comes from there.
                Err(error @ Error::PortTaken(_)) => Err(error.to_string()),
                started => Ok(started),
            }
        })?
    }

    /// What it counted about `command` (any case; `config|get` for a subcommand, from Redis 7 on).
    pub fn commandstats(&self, command: &str) -> Result<CommandStats, Error> {
        let info = self.info("commandstats")?;
        Ok(CommandStats::read(&info, command))
    }

    /// The text of `INFO section`.
    pub(crate) fn info(&self, section: &str) -> Result<String, Error> {
        self.text("INFO", &[section]).map_err(Error::redis(format!("INFO on port {}", self.port())))
    }

    /// The password that its arguments set.
    pub(crate) fn password(&self) -> Option<&str> {
        self.argument("--requirepass")
    }

    /// The port by which a cluster node is known to clients and to the other nodes.
    pub(crate) fn announced(&self) -> u16 {
        self.argument("--cluster-announce-port").and_then(|port| port.parse().ok()).unwrap_or(self.port())
    }

    fn argument(&self, name: &str) -> Option<&str> {
        let at = self.args.iter().rposition(|arg| arg == name)?;
        self.args.get(at + 1).map(String::as_str)
    }

    /// `:PASSWORD@` when there is one, escaped as a URL wants it.
    pub(crate) fn credentials(&self) -> String {
        let escaped = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        self.password().map(|word| format!(":{}@", word.bytes().map(escaped).collect::<String>())).unwrap_or_default()
    }

    fn connect(&self) -> Result<Connection, RedisError> {
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(password) = self.password() {
            settings = settings.set_password(password);
        }
        let address = ("127.0.0.1", self.port()).into_connection_info()?.set_redis_settings(settings);
        let connection = Client::open(address)?.get_connection_with_timeout(CONNECT_TIMEOUT)?;
        connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
        connection.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(connection)
    }

    fn text(&self, command: &str, args: &[&str]) -> Result<String, RedisError> {
        redis::cmd(command).arg(args).query(&mut self.connect()?)
    }

    fn spawn(&self) -> Result<Process, Error> {
        // Begun anew each time: an earlier failure must not be taken for this one's.
        let log = File::create(self.folder.path().join("log")).map_err(Error::io("cannot open the server's log"))?;
        let errors = log.try_clone().map_err(Error::io("cannot open the server's log"))?;
        let mut command = Command::new(self.binary.path());
        command.args(["--port", &self.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(self.folder.path()).args(&self.args);
        // A group of its own: a Ctrl-C is for the program in the foreground, which decides when its servers end.
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        let child = tied::spawn(command).map_err(Error::io(format!("cannot run {}", self.binary)))?;
        Ok(Process { child, frozen: false })
    }

    /// The process id while it runs; one that ended is reaped and gives `None`.
    fn living(&self) -> Result<Option<u32>, String> {
        let mut guard = self.process();
        let Some(process) = guard.as_mut() else {
            return Ok(None);
        };
        let ended = process.child.try_wait().map_err(|error: io::Error| error.to_string())?;
        Ok(ended.is_none().then(|| process.child.id()))
    }

    fn post_mortem(&self) -> Error {
        let log = self.log();
        match log.contains("Address already in use") {
            true => Error::PortTaken(self.port()),
            false => Error::Died { port: self.port(), log },
        }
    }

    /// The last lines of its log.
    fn log(&self) -> String {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    fn not_running(&self) -> Error {
        Error::Invalid(format!("the server on port {} is not running", self.port()))
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        // Every state in between is a valid one, so a thread that panicked leaves nothing broken behind.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only for a process that has ended and was waited for, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
