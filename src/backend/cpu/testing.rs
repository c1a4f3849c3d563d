//! Sample points and timing for tests and measurements.

use blstrs::Scalar;
use group::{Curve, Group};

use crate::curve::{AffinePoint, BatchAdder};

/// Distinct points B + i S for i below `count`.
pub(in crate::backend) fn sample_points<P: AffinePoint>(count: usize) -> Vec<P> {
    let mut adder = BatchAdder::new();
    let mut points = vec![(P::Projective::generator() * Scalar::from(0x5a5a_1234)).to_affine()];
    let mut step = P::Projective::generator() * Scalar::from(0x1234_5678_9abc);
    while points.len() < count {
        let len = points.len();
        points.extend_from_within(..len.min(count - len));
        let step_affine: P = step.to_affine();
        adder.add_with(&mut points[len..], |_| step_affine);
        step = step.double();
    }
    points
}

/// Prints how long `work` takes, by the clock and in processor time of all threads. The latter can be compared
/// even when other processes run.
pub(super) fn measure(label: &str, work: impl FnOnce()) {
    let (begin, processor) = (std::time::Instant::now(), processor_seconds());
    work();
    let (wall, processor) = (begin.elapsed().as_secs_f64(), processor_seconds() - processor);
    println!("{label}: {wall:.3} s, {processor:.3} s of processor time");
}

fn processor_seconds() -> f64 {
    // SAFETY: getrusage fills the structure that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
