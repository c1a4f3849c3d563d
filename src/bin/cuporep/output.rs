//! What the tool prints and writes.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cuporep::{Class, Error, Result};
use serde_json::{json, Value};
use tempfile::NamedTempFile;

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

    /// Tells people something that the result does not say.
    pub fn notice(&self, text: &str) {
        if !self.json {
            eprintln!("cuporep: {text}");
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

/// A file that appears whole or not at all. It is created, under a temporary name, before the work that fills
/// it, so that a directory that cannot be written to is found then.
pub struct WholeFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl WholeFile {
    pub fn create(path: &Path) -> Result<Self> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let created = tempfile::Builder::new()
            .prefix(".cuporep-")
            // As other files; the umask applies.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory);
        let file = created.map_err(|source| Error::Io { action: "write", path: path.to_path_buf(), source })?;
        Ok(WholeFile { path: path.to_path_buf(), file })
    }

    /// Fills the file, makes it durable and gives it its name.
    pub fn finish(mut self, bytes: &[u8]) -> Result<()> {
        let fail = |source| Error::Io { action: "write", path: self.path.clone(), source };
        self.file.write_all(bytes).and_then(|()| self.file.as_file().sync_all()).map_err(fail)?;
        self.file.persist(&self.path).map_err(|error| fail(error.error))?;
        Ok(())
    }
}
