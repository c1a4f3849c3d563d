//! What proofs of a sector size take on a GPU, without making one: needs no GPU, no parameters and no C1 output.

use super::parameters;
use crate::backend::accelerator::accelerators;
use crate::backend::cuda::gpu::{properties_of_all, Limits};
use crate::backend::cuda::summary::{GpuPlan, Recorded};
use crate::error::{Error, Result};
use crate::pipeline::available_memory;
use crate::porep::SectorSize;

/// The kind of GPU that is thought of where there is none: of the middle class.
const ASSUMED: Limits = Limits { multiprocessors: 80, shared_optin: 99 << 10 };

/// What a plan is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct PlanRequest {
    /// The sector size.
    pub size: SectorSize,
    /// Partitions that are proved together.
    pub partitions: usize,
    /// Bytes of the GPU's memory that may be used. Default: what is free on the first GPU.
    pub device_memory: Option<u64>,
    /// Bytes of host memory that a proof may take. Default: what is available on this machine.
    pub memory: Option<u64>,
}

/// Where everything of a proof on a GPU will be.
///
/// # Errors
/// [`Error::Memory`] with the numbers if it cannot be made with so much memory; [`Error::Device`] if no memory is named and
/// there is no GPU.
pub fn plan_gpu(request: &PlanRequest) -> Result<GpuPlan> {
    let PlanRequest { size, partitions, device_memory, memory } = *request;
    let first = properties_of_all()?.into_iter().next();
    let device = match (device_memory, &first) {
        (Some(memory), _) => memory,
        (None, Some(first)) => crate::backend::cuda::free_memory(first.ordinal)?,
        (None, None) => {
            let detail = format!("{}; say how much memory one would have", accelerators().why_none());
            return Err(Error::Device { device: "gpu".into(), detail });
        }
    };
    let limits = first.map_or(ASSUMED, |first| first.limits());
    let host = memory.or_else(available_memory).unwrap_or(u64::MAX);
    GpuPlan::new(&parameters::expected(size).counts, &recorded(size), partitions, limits, device, host)
}

/// What was counted of the recorded circuits.
fn recorded(size: SectorSize) -> Recorded {
    let (full, tables) = match size {
        SectorSize::KiB2 => ([43_806, 33_169, 31_830], 8_589_064),
        SectorSize::MiB8 => ([111_998, 84_929, 80_982], 11_215_044),
        SectorSize::MiB512 => ([146_094, 110_809, 105_558], 12_528_016),
        SectorSize::GiB32 => ([1_699_102, 1_288_261, 1_229_274], 149_352_360),
        SectorSize::GiB64 => ([1_789_606, 1_356_265, 1_296_666], 152_443_360),
    };
    Recorded { rows: size.parameters().counts.rows, full, tables }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Control;

    const GIB: u64 = 1 << 30;

    /// Of an H200, and of a consumer's card.
    const H200: Limits = Limits { multiprocessors: 132, shared_optin: 227 << 10 };
    const CARD: Limits = Limits { multiprocessors: 70, shared_optin: 99 << 10 };

    fn check(sizes: &[SectorSize]) {
        let found = |size| Recorded::of(&crate::porep::templates(size, &Control::new()).unwrap()).unwrap();
        let found: Vec<_> = sizes.iter().map(|&size| found(size)).collect();
        let known: Vec<_> = sizes.iter().map(|&size| recorded(size)).collect();
        assert_eq!(known, found);
    }

    #[test]
    fn numbers_are_those_of_the_recorded_circuit() {
        check(&[SectorSize::KiB2]);
    }

    #[test]
    #[ignore = "takes two minutes"]
    fn numbers_are_those_of_all_recorded_circuits() {
        check(&SectorSize::ALL);
    }

    fn plan(size: SectorSize, limits: Limits, device: u64, host: u64) -> Result<GpuPlan> {
        GpuPlan::new(&parameters::expected(size).counts, &recorded(size), 10, limits, device, host)
    }

    #[test]
    fn large_sectors_are_proved_with_15_gib_and_more() {
        for (size, limits) in [(SectorSize::GiB32, CARD), (SectorSize::GiB64, CARD), (SectorSize::GiB32, H200)] {
            let with = |gib: u64| {
                let plan = plan(size, limits, gib * GIB, 64 * GIB).unwrap();
                let GpuPlan { device_bytes, table_bytes, resident_bytes, proof_bytes, .. } = plan;
                assert!(device_bytes <= gib * GIB, "{size}, {gib} GiB: {plan:?}");
                assert!(device_bytes - (table_bytes + resident_bytes + proof_bytes) < 4096, "{plan:?}");
                assert!(plan.host_bytes < 2 * GIB && plan.pinned_bytes < GIB, "{plan:?}");
                plan
            };
            let stays =
                |plan: &GpuPlan, query: usize| plan.bases[query].resident as f64 / plan.bases[query].count as f64;
            // Bases of h are moved for every partition, others once.
            let little = with(15);
            assert!(stays(&little, 0) < 0.25 && (1..5).all(|query| stays(&little, query) == 0.0), "{little:?}");
            assert!((130e9..170e9).contains(&(little.moved_bytes as f64)), "{little:?}");
            assert_eq!(little.chunk, Some(1 << 24));
            let more = with(23);
            assert!((0.5..1.0).contains(&stays(&more, 0)) && stays(&more, 1) == 0.0, "{more:?}");
            assert!((50e9..90e9).contains(&(more.moved_bytes as f64)), "{more:?}");
            let all_of_h = with(31);
            assert!(stays(&all_of_h, 0) == 1.0 && all_of_h.moved_bytes < 36_000_000_000, "{all_of_h:?}");
            for gib in [79, 140] {
                let all = with(gib);
                assert!(all.chunk.is_none() && all.moved_bytes < GIB && all.resident_bytes > 44 * GIB, "{all:?}");
                assert!(all.device_bytes < 95 * GIB, "{all:?}");
            }
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_the_numbers() {
        let numbers = |device, host| match plan(SectorSize::GiB32, CARD, device, host) {
            Err(Error::Memory { needed, available, advice, .. }) if !advice.is_empty() => (needed, available),
            other => panic!("{other:?}"),
        };
        let (needed, available) = numbers(11 * GIB, 64 * GIB);
        assert!((12 * GIB..15 * GIB).contains(&needed) && available == 11 * GIB, "{needed} of {available}");
        assert!(plan(SectorSize::GiB32, CARD, needed, 64 * GIB).is_ok());
        assert_eq!(numbers(needed - 1, 64 * GIB), (needed, needed - 1));
        let (needed, available) = numbers(15 * GIB, GIB / 2);
        assert!((GIB..2 * GIB).contains(&needed) && available == GIB / 2, "{needed} of {available}");
    }

    #[test]
    fn small_sectors_stay_on_a_small_card() {
        for size in [SectorSize::KiB2, SectorSize::MiB8, SectorSize::MiB512] {
            let plan = GpuPlan::new(&parameters::expected(size).counts, &recorded(size), 1, CARD, 7 * GIB, 8 * GIB);
            assert_eq!(plan.unwrap().chunk, None, "{size}");
        }
    }
}
