//! Shows on a terminal what is being done.

use std::io::{self, IsTerminal};
use std::time::Duration;

use cuporep::pipeline::{Control, Event};
use indicatif::{ProgressBar, ProgressStyle};

/// Adds a progress line on standard error, if that is a terminal and no machine is listening.
pub fn watch(control: Control, json: bool) -> Control {
    if json || !io::stderr().is_terminal() {
        return control;
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}");
    let bar = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(100));
    control.with_progress(move |event: &Event| match (event.elapsed, event.partition) {
        (None, Some(partition)) => bar.set_message(format!("partition {partition}: {}", event.stage)),
        (None, None) => bar.set_message(event.stage.to_string()),
        _ => {}
    })
}
