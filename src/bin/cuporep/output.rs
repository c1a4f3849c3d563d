//! What the tool prints and writes.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cuporep::pipeline::Event;
use cuporep::{Class, Error, Result};
use serde_json::{json, Value};
use tempfile::NamedTempFile;

/// The exit code after a cancel.
pub const EXIT_CANCELLED: u8 = 5;

/// Standard output, for people or for machines.
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    /// Whether `--out` asks for raw bytes on standard output, by `-`.
    pub fn is_for_raw_bytes(&self, out: &Path) -> Result<bool> {
        let to_stdout = out.as_os_str() == "-";
        if to_stdout && self.json {
            let detail = "raw bytes and --json cannot share standard output".into();
            return Err(Error::Argument { name: "--out", detail });
        }
        Ok(to_stdout)
    }

    /// Prints the one result of a command.
    pub fn result(&self, text: &str, machine: &Value) -> Result<()> {
        if self.json {
            self.line(&machine.to_string())
        } else {
            self.line(text)
        }
    }

    /// Prints a part of a result that takes long, for people.
    pub fn row(&self, text: &str) -> Result<()> {
        if self.json {
            return Ok(());
        }
        self.line(text)
    }

    /// Tells people something that the result does not say.
    pub fn notice(&self, text: &str) {
        if !self.json {
            complain(text);
        }
    }

    /// Prints an error and gives its exit code.
    pub fn failed(&self, error: &Error) -> ExitCode {
        let class = error.class();
        if self.json {
            let object = json!({"error": {"class": class.name(), "code": error.code(), "message": error.to_string()}});
            // Nobody is left to tell when standard output is closed; the exit code still says it.
            let _ = self.line(&object.to_string());
        } else {
            complain(&format!("{class} error {}: {error}", error.code()));
        }
        ExitCode::from(match class {
            Class::Input => 1,
            Class::Parameters => 3,
            Class::Resource => 4,
            Class::Cancelled => EXIT_CANCELLED,
            _ => 6,
        })
    }

    fn line(&self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(standard_output)
    }
}

/// A line on standard error, if anybody can read it.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "cuporep: {text}");
}

fn standard_output(source: io::Error) -> Error {
    Error::Io { action: "write", path: "standard output".into(), source }
}

/// A duration in milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The stages of a proof for machines.
pub fn stage_times(stages: &[Event]) -> Vec<Value> {
    let object =
        |event: &Event| json!({"stage": event.stage.name(), "partition": event.partition, "ms": event.elapsed.map(ms)});
    stages.iter().map(object).collect()
}

/// Writes raw bytes to standard output.
pub fn write_standard_output(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(standard_output)
}

/// Where a result is written to. It is opened before the work, so that what cannot be written to is found then.
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    /// A file that appears whole or not at all: it gets its name when it is complete.
    Whole(NamedTempFile),
    /// What is no file, such as a device or a pipe, is written through.
    Through(File),
}

impl OutputFile {
    pub fn create(path: &Path) -> Result<Self> {
        let wrong = |detail: &str| Error::Argument { name: "--out", detail: format!("{}: {detail}", path.display()) };
        let fail = |source| Error::Io { action: "write", path: path.to_path_buf(), source };
        // Links are followed: what they point to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let sink = match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(wrong("is a directory")),
            Ok(metadata) if !metadata.is_file() => {
                Sink::Through(File::options().write(true).open(&path).map_err(fail)?)
            }
            _ => {
                let directory = match path.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() => parent,
                    _ => Path::new("."),
                };
                let created = tempfile::Builder::new()
                    .prefix(".cuporep-")
                    // As other files; the umask applies.
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(directory);
                Sink::Whole(created.map_err(|error| fail(error.kind().into()))?)
            }
        };
        Ok(OutputFile { path, sink })
    }

    /// Writes all bytes; a file is made durable and gets its name.
    pub fn finish(self, bytes: &[u8]) -> Result<()> {
        let fail = |source| Error::Io { action: "write", path: self.path.clone(), source };
        match self.sink {
            Sink::Through(mut file) => file.write_all(bytes).map_err(fail),
            Sink::Whole(mut file) => {
                file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
                file.persist(&self.path).map_err(|error| fail(error.error))?;
                Ok(())
            }
        }
    }
}
