//! The logs: opened before anything is played, read by a thread of their own, plain or gzip, with a progress bar.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal, Read, stderr, stdin};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use super::format::Format;
use super::lines::{self, Lines};
use super::record::{Flaw, Request, Wanted};
use crate::args::FormatName;
use crate::exit::Failure;
use crate::feed::{Feed, Sink};

/// How much of a log is looked at to guess its format.
const HEAD: u64 = 16 << 10;

/// How many lines are handed over at a time.
const BATCH: usize = 512;

/// A log that can be read.
pub(crate) struct Log {
    /// What to call it in front of people.
    pub(crate) name: String,
    path: PathBuf,
    /// `None` is standard input.
    file: Option<File>,
}

impl Log {
    /// Opens a log; `-` is standard input.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Log { name: "standard input".into(), path, file: None });
        }
        let file = File::open(&path).map_err(|error| Failure::file(&path, &error))?;
        let folder = file.metadata().is_ok_and(|found| found.is_dir());
        if folder {
            return Err(Failure::file(&path, &io::ErrorKind::IsADirectory.into()));
        }
        Ok(Log { name: path.display().to_string(), path, file: Some(file) })
    }

    /// Its size in bytes, where that is known.
    fn size(&self) -> Option<u64> {
        let found = self.file.as_ref()?.metadata().ok()?;
        found.is_file().then_some(found.len())
    }
}

/// A line of a log.
pub(crate) struct Entry {
    /// Its number in its log, from 1.
    pub(crate) number: u64,
    /// The index of its log.
    pub(crate) log: usize,
    pub(crate) request: Result<Request, Flaw>,
}

/// Lines of the logs in their order, or what kept them from being read.
pub(crate) type Batch = Result<Vec<Entry>, Failure>;

/// Starts to read all logs, one after another.
pub(crate) fn read(logs: Vec<Log>, format: Option<FormatName>, wanted: Wanted) -> Feed<Batch> {
    let bar = progress(&logs);
    Feed::start(move |sink| {
        for (index, log) in logs.into_iter().enumerate() {
            let path = log.path.clone();
            match read_log(log, index, format, &wanted, &bar, &sink) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    sink.put(Err(Failure::file(&path, &error)));
                    return;
                }
            }
        }
        bar.finish_and_clear();
    })
}

/// Reads a log to its end. False when nobody wants more.
fn read_log(
    log: Log,
    index: usize,
    format: Option<FormatName>,
    wanted: &Wanted,
    bar: &ProgressBar,
    sink: &Sink<Batch>,
) -> io::Result<bool> {
    let bytes: Box<dyn Read> = match log.file {
        Some(file) => Box::new(bar.wrap_read(file)),
        None => Box::new(bar.wrap_read(stdin())),
    };
    let (head, text) = beginning(unpacked(bytes)?, HEAD)?;
    let mut format = format.map_or_else(|| Format::guess(&head, wanted), Format::from);
    let mut lines = Lines::new(text);
    let (mut batch, mut number) = (Vec::with_capacity(BATCH), 0);
    while let Some(line) = lines.next()? {
        number += 1;
        let request = match line.len() > lines::LONGEST {
            true => Some(Err(format!("longer than {} bytes", lines::LONGEST).into())),
            false => format.request(line, wanted),
        };
        batch.extend(request.map(|request| Entry { number, log: index, request }));
        if batch.len() == BATCH && !sink.put(Ok(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)))) {
            return Ok(false);
        }
    }
    Ok(sink.put(Ok(batch)))
}

/// The text of a log, which gzip may have packed, in one piece or in many.
fn unpacked(bytes: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let (magic, bytes) = beginning(bytes, 2)?;
    Ok(match magic[..] {
        [0x1f, 0x8b] => Box::new(MultiGzDecoder::new(bytes)),
        _ => Box::new(bytes),
    })
}

/// How an input begins, and the whole of it.
fn beginning(mut input: impl Read, length: u64) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut head = Vec::new();
    input.by_ref().take(length).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(BufReader::with_capacity(256 << 10, input));
    Ok((head, whole))
}

/// A bar on a terminal, and nothing elsewhere.
fn progress(logs: &[Log]) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let size = logs.iter().map(Log::size).sum::<Option<u64>>();
    let (bar, template) = match size {
        Some(size) => (ProgressBar::new(size), "{bar:30} {percent:>3} %  {bytes} of {total_bytes}  {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} read  {elapsed}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
