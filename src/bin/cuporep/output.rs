//! What the tool prints and writes.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use cuporep::{Class, Error, Result};
use serde_json::{json, Value};

/// Standard output, for people or for machines.
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    /// Prints the one result of a command.
    pub fn result(&self, text: &str, machine: &Value) -> Result<()> {
        if self.json {
            self.line(&machine.to_string())
        } else {
            self.line(text)
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
            eprintln!("cuporep: {class} error {}: {error}", error.code());
        }
        ExitCode::from(match class {
            Class::Input => 1,
            Class::Parameters => 3,
            Class::Resource => 4,
            Class::Cancelled => 5,
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

fn standard_output(source: io::Error) -> Error {
    Error::Io { action: "write", path: "standard output".into(), source }
}

/// Writes raw bytes to standard output.
pub fn write_standard_output(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(standard_output)
}

/// Writes a file whole or not at all: a temporary file beside it is synced, then renamed over it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |source| Error::Io { action: "write", path: path.to_path_buf(), source };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".cuporep-").tempfile_in(directory).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
