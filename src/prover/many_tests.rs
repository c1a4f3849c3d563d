//! Many proofs at once on few devices that fail, under little memory: what a node does all day.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::testing::{eventually, prover_of, within, FakeGpus, Step, SMALL};
use super::*;
use crate::backend::Backend;
use crate::pipeline::CancelToken;

const THREE: [&str; 3] = ["GPU-a", "GPU-b", "GPU-c"];

fn config(policy: Policy) -> Config {
    Config { placement: Placement { policy: Some(policy), devices: Vec::new() }, ..Config::default() }
}

fn gpus(count: usize) -> FakeGpus {
    FakeGpus::new(&THREE[..count])
}

/// Half a second is the bound on two free cores; tests share theirs.
const SOON: Duration = Duration::from_secs(2);

/// A prover that has nothing in work, holds no more than what it keeps, and makes the next proof.
fn is_calm(prover: &Prover) {
    let status = prover.status();
    assert_eq!((status.waiting, status.running), (0, 0), "{status:?}");
    assert!(status.devices.iter().all(|device| (device.proofs, device.partitions) == (0, 0)), "{status:?}");
    let kept: u64 = prover.lanes.get(&Candidate::Cpu).opened().map_or(0, |cpu| cpu.kept_memory());
    let bases = kept.max(1 << 20);
    assert!(status.host_reserved <= 4 * bases, "{status:?}");
}

/// The most that are inside at once, between two stages of their proofs.
#[derive(Default)]
struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    fn enter(&self) {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn thirty_proofs_under_a_budget_for_two_all_verify_within_it() {
    within(60, || {
        let load = SMALL.load(1);
        let shared = CpuBackend::default().host_memory(&load);
        let budget = shared + 2 * load.witness_bytes() + load.witness_bytes() / 2;
        // Bytes are what they wait for.
        let prover = prover_of(gpus(0), Config { memory: Some(budget), gpu_workers: Some(64), ..config(Policy::Cpu) });
        let inside = Arc::new(Inside::default());
        thread::scope(|scope| {
            for _ in 0..30 {
                let (prover, watched) = (&prover, inside.clone());
                let control = Control::new().with_progress(move |event| match (event.stage, event.elapsed) {
                    (Stage::Witness, None) => watched.enter(),
                    (Stage::Verify, Some(_)) => watched.leave(),
                    _ => (),
                });
                scope.spawn(move || SMALL.prove(prover, 1, &control).unwrap());
            }
        });
        let status = prover.status();
        assert!(status.host_peak <= budget && status.host_budget == Some(budget), "{status:?}");
        assert_eq!(inside.most.load(Ordering::SeqCst), 2, "witnesses of two proofs at once, and never of more");
        is_calm(&prover);
    });
}

#[test]
fn no_more_proofs_have_witnesses_than_workers_allow() {
    within(60, || {
        let gpus = gpus(1).proving(0, &[Step::Wait; 3]);
        let prover = prover_of(gpus.clone(), Config { gpu_workers: Some(3), ..config(Policy::GpuOnly) });
        let made = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                let (prover, made) = (&prover, made.clone());
                let control = Control::new().with_progress(move |event| {
                    if event.stage == Stage::Witness && event.elapsed.is_some() {
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                });
                scope.spawn(move || SMALL.prove(prover, 1, &control).unwrap());
            }
            gpus.script.wait_for_waiting(1);
            // The others' witnesses are made while one computes.
            eventually("three witnesses", || made.load(Ordering::SeqCst) == 3);
            eventually("three partitions", || prover.status().devices[0].partitions == 3);
            eventually("five calls that wait", || prover.status().waiting == 5);
            let status = prover.status();
            let device = &status.devices[0];
            assert_eq!((status.running, device.proofs, device.partitions), (3, 3, 3), "{status:?}");
            assert_eq!((device.name.as_str(), device.uuid.as_str()), ("cuda:0 Fake (GPU-a)", "GPU-a"));
            assert!(device.is_up() && device.bytes == 1 << 20);
            thread::sleep(Duration::from_millis(20));
            assert_eq!(made.load(Ordering::SeqCst), 3);
            gpus.script.go_on();
        });
        assert_eq!(made.load(Ordering::SeqCst), 8);
        is_calm(&prover);
    });
}

#[test]
fn partitions_are_spread_over_all_devices_and_redone_where_one_fails() {
    within(60, || {
        let gpus = gpus(3).proving(1, &[Step::NoMemory]);
        let prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        let made = SMALL.prove(&prover, 10, &Control::new()).unwrap();
        assert_eq!(made.device, "cuda:0, cuda:2");
        assert_eq!(made.fallbacks.iter().map(|fallback| fallback.code).collect::<Vec<_>>(), [300]);
        let mut ranges = gpus.script.ranges.lock().clone();
        ranges.sort_by_key(|(device, range)| (range.start, *device));
        // A third each, then the middle one's by halves.
        assert_eq!(ranges, [(0, 0..3), (0, 3..4), (1, 3..6), (2, 4..6), (2, 6..10)]);
        gpus.script.ranges.lock().clear();
        assert_eq!(SMALL.prove(&prover, 2, &Control::new()).unwrap().device, "cuda:0, cuda:1");
        is_calm(&prover);
    });
}

/// The devices that each of so many proofs was made on, of calls that come one after the other while no proof ends, and
/// how many parts all of them had. Their bytes are those that one device makes alone.
fn at_once(devices: usize, proofs: usize) -> (Vec<String>, usize) {
    let alone = SMALL.prove_fixed(&prover_of(gpus(1), config(Policy::GpuOnly)), 6).unwrap().bytes;
    let gpus = (0..devices as u32).fold(gpus(devices), |gpus, ordinal| gpus.proving(ordinal, &[Step::Wait]));
    let prover = prover_of(gpus.clone(), Config { gpu_workers: Some(3), ..config(Policy::GpuOnly) });
    let made: Vec<Made> = thread::scope(|scope| {
        let calls: Vec<_> = (1..=proofs)
            .map(|count| {
                let call = scope.spawn(|| SMALL.prove_fixed(&prover, 6).unwrap());
                let are_there = || {
                    let status = prover.status();
                    let partitions: usize = status.devices.iter().map(|device| device.partitions).sum();
                    6 * status.waiting + partitions == 6 * count
                };
                eventually("a call that has its devices or waits", are_there);
                call
            })
            .collect();
        gpus.script.wait_for_waiting(devices as u64);
        gpus.script.go_on();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(made.iter().all(|made| made.bytes == alone && made.fallbacks.is_empty()));
    is_calm(&prover);
    let parts = gpus.script.ranges.lock().len();
    (made.into_iter().map(|made| made.device).collect(), parts)
}

#[test]
fn proofs_go_whole_to_devices_where_there_is_one_for_each_and_are_divided_where_there_are_fewer() {
    within(120, || {
        for proofs in [1, 2, 3, 5] {
            assert_eq!(at_once(1, proofs), (vec!["cuda:0".to_owned(); proofs], proofs));
        }
        // The first one finds nobody else there.
        let on_two = ["cuda:0, cuda:1", "cuda:0", "cuda:1", "cuda:0", "cuda:1"];
        let on_three = ["cuda:0, cuda:1, cuda:2", "cuda:0, cuda:1", "cuda:2", "cuda:0", "cuda:1"];
        for (devices, names, proofs, parts) in [
            (2, on_two, 1, 2),
            (2, on_two, 2, 3),
            (2, on_two, 3, 4),
            (2, on_two, 5, 6),
            (3, on_three, 1, 3),
            (3, on_three, 2, 5),
            (3, on_three, 3, 6),
            (3, on_three, 5, 8),
        ] {
            let names = names[..proofs].iter().map(|&name| name.to_owned()).collect();
            assert_eq!(at_once(devices, proofs), (names, parts));
        }
    });
}

#[test]
fn calls_that_come_at_the_same_moment_have_a_device_each() {
    within(60, || {
        let prover = prover_of(gpus(2), config(Policy::GpuOnly));
        let both_are_there = Arc::new(AtomicBool::new(false));
        let devices: Vec<String> = thread::scope(|scope| {
            let calls: Vec<_> = (1..=2)
                .map(|count| {
                    let both_are_there = both_are_there.clone();
                    let control = Control::new().with_progress(move |event| {
                        if (event.stage, event.partition, event.elapsed) == (Stage::Witness, Some(0), None) {
                            eventually("the other call", || both_are_there.load(Ordering::SeqCst));
                        }
                    });
                    let prover = &prover;
                    let call = scope.spawn(move || SMALL.prove(prover, 4, &control).unwrap().device);
                    eventually("a call in work", || prover.status().running == count);
                    call
                })
                .collect();
            both_are_there.store(true, Ordering::SeqCst);
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert_eq!(devices, ["cuda:1", "cuda:0"], "the first one had both for a moment");
        is_calm(&prover);
    });
}

#[test]
fn a_whole_proof_goes_to_an_idle_device_and_when_the_others_have_ended_the_next_is_divided() {
    within(60, || {
        let gpus = (0..2).fold(gpus(2), |gpus, ordinal| gpus.proving(ordinal, &[Step::Wait; 3]));
        let prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        let tokens: Vec<CancelToken> = (0..4).map(|_| CancelToken::new()).collect();
        // Those whose work was handed out.
        let proofs = || {
            let (devices, running) = (prover.status().devices, prover.status().running);
            let partitions: usize = devices.iter().map(|device| device.partitions).sum();
            devices.iter().filter(|_| partitions == 4 * running).map(|device| device.proofs).collect::<Vec<_>>()
        };
        thread::scope(|scope| {
            let begin = |index: usize, places: [usize; 3]| {
                let control = Control::new().with_cancel(tokens[index].clone());
                let prover = &prover;
                scope.spawn(move || SMALL.prove(prover, 4, &control));
                eventually(&format!("call {index} in work"), || proofs() == places);
            };
            let end = |index: usize, places: [usize; 3]| {
                tokens[index].cancel();
                eventually(&format!("call {index} ended"), || proofs() == places);
            };
            begin(0, [1, 1, 0]);
            begin(1, [2, 1, 0]);
            end(0, [1, 0, 0]);
            begin(2, [1, 1, 0]);
            end(1, [0, 1, 0]);
            end(2, [0, 0, 0]);
            begin(3, [1, 1, 0]);
            end(3, [0, 0, 0]);
        });
        is_calm(&prover);
    });
}

#[test]
fn a_whole_proof_is_made_elsewhere_within_its_call_when_its_device_fails() {
    within(60, || {
        let gpus = gpus(2).proving(0, &[Step::Wait, Step::NoMemory]).proving(1, &[Step::Wait]);
        let prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        let made: Vec<Made> = thread::scope(|scope| {
            let calls: Vec<_> = [[1, 1], [2, 1], [2, 2]]
                .into_iter()
                .map(|places| {
                    let call = scope.spawn(|| SMALL.prove(&prover, 4, &Control::new()).unwrap());
                    eventually("a call in work", || {
                        prover.status().devices.iter().zip(places).all(|(device, proofs)| device.proofs == proofs)
                    });
                    // The first one has both devices.
                    gpus.script.wait_for_waiting(2);
                    call
                })
                .collect();
            gpus.script.go_on();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let made: Vec<(&str, usize)> = made.iter().map(|made| (made.device.as_str(), made.fallbacks.len())).collect();
        assert_eq!(made, [("cuda:0, cuda:1", 0), ("cuda:1", 1), ("cuda:1", 0)]);
        is_calm(&prover);
    });
}

#[test]
fn whole_proofs_begin_oldest_first_whatever_comes_later() {
    within(60, || {
        let gpus = (0..2).fold(gpus(2), |gpus, ordinal| gpus.proving(ordinal, &[Step::Wait; 8]));
        let prover = prover_of(gpus.clone(), Config { gpu_workers: Some(1), ..config(Policy::GpuOnly) });
        let began = Arc::new(Mutex::new(Vec::new()));
        let tokens: Vec<CancelToken> = (0..8).map(|_| CancelToken::new()).collect();
        thread::scope(|scope| {
            // One on each device, and the others wait. Every second one has one partition.
            for (index, token) in tokens.iter().enumerate() {
                let began = began.clone();
                let control = Control::new().with_cancel(token.clone()).with_progress(move |event| {
                    if event.stage == Stage::Queue && event.elapsed.is_some() {
                        began.lock().push(index);
                    }
                });
                let prover = &prover;
                scope.spawn(move || SMALL.prove(prover, if index % 2 == 0 { 1 } else { 10 }, &control));
                let count = index + 1;
                eventually("the call", || prover.status().waiting + prover.status().running == count);
            }
            // One place after the other becomes free, and later ones are there all the time.
            for (index, token) in tokens.iter().enumerate() {
                let count = tokens.len().min(index + 2);
                eventually("the oldest call", || began.lock().len() == count);
                token.cancel();
            }
        });
        assert_eq!(*began.lock(), (0..8).collect::<Vec<_>>());
        is_calm(&prover);
    });
}

#[test]
fn proofs_of_one_partition_go_to_the_device_that_has_the_least_to_do() {
    within(60, || {
        let gpus = (0..3).fold(gpus(3), |gpus, ordinal| gpus.proving(ordinal, &[Step::Wait]));
        let prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        let mut devices: Vec<String> = thread::scope(|scope| {
            let calls: Vec<_> =
                (0..3).map(|_| scope.spawn(|| SMALL.prove(&prover, 1, &Control::new()).unwrap().device)).collect();
            gpus.script.wait_for_waiting(3);
            gpus.script.go_on();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        devices.sort();
        assert_eq!(devices, ["cuda:0", "cuda:1", "cuda:2"]);
    });
}

#[test]
fn a_device_that_failed_is_set_aside_and_used_when_nothing_else_is_left() {
    within(60, || {
        let gpus = gpus(2).proving(0, &[Step::NoMemory]);
        let mut prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        prover.lanes.timing.set_aside = Duration::from_secs(60);
        assert_eq!(SMALL.prove(&prover, 1, &Control::new()).unwrap().device, "cuda:1");
        let devices = prover.status().devices;
        assert!(!devices[0].is_up() && devices[0].set_aside.is_some() && devices[1].is_up());
        for _ in 0..3 {
            let made = SMALL.prove(&prover, 4, &Control::new()).unwrap();
            assert_eq!((made.device.as_str(), made.fallbacks.len()), ("cuda:1", 0));
        }
        // The other one fails too: the first is better than none, and works again.
        gpus.clone().proving(1, &[Step::NoMemory]);
        let made = SMALL.prove(&prover, 1, &Control::new()).unwrap();
        assert_eq!((made.device.as_str(), made.fallbacks.len()), ("cuda:0", 1));
        let devices = prover.status().devices;
        assert!(devices[0].is_up() && !devices[1].is_up());
        // Where the CPU may prove, it does, and the report says why.
        gpus.clone().proving(0, &[Step::NoMemory]);
        let cpu = Placement { policy: Some(Policy::PreferGpu), devices: Vec::new() };
        prover.placement = cpu;
        assert_eq!(SMALL.prove(&prover, 1, &Control::new()).unwrap().device, "cpu");
        let made = SMALL.prove(&prover, 1, &Control::new()).unwrap();
        assert_eq!((made.device.as_str(), made.fallbacks.len()), ("cpu", 2));
    });
}

#[test]
fn devices_that_fail_at_random_give_no_wrong_byte_and_no_hang() {
    within(300, || {
        for seed in 0..2 {
            let gpus = gpus(3).by_chance(seed);
            let prover = prover_of(gpus, config(Policy::PreferGpu));
            let (next, good, panicked, fell_back) = <(AtomicUsize, AtomicUsize, AtomicUsize, AtomicUsize)>::default();
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if number >= 100 {
                            return;
                        }
                        // Verified by the test as well.
                        match SMALL.prove(&prover, 1 + number % 3, &Control::new()) {
                            Ok(made) => {
                                good.fetch_add(1, Ordering::SeqCst);
                                fell_back.fetch_add(made.fallbacks.len().min(1), Ordering::SeqCst);
                            }
                            Err(Error::Panic { message, .. }) if message.contains("planned") => {
                                panicked.fetch_add(1, Ordering::SeqCst);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    });
                }
            });
            let counts = [&good, &panicked, &fell_back].map(|count| count.load(Ordering::SeqCst));
            assert_eq!(counts[0] + counts[1], 100);
            assert!(counts[0] > 50 && counts[1] > 0 && counts[2] > 10, "{counts:?}");
            is_calm(&prover);
        }
    });
}

#[test]
fn a_cancel_at_any_stage_ends_one_proof_and_no_other() {
    within(120, || {
        let prover = prover_of(gpus(2), config(Policy::GpuOnly));
        let stages = [
            Stage::Queue,
            Stage::Witness,
            Stage::Parameters,
            Stage::Evaluate,
            Stage::SumH,
            Stage::SumB2,
            Stage::Verify,
        ];
        for stage in stages {
            for ended in [false, true] {
                thread::scope(|scope| {
                    let others: Vec<_> =
                        (0..3).map(|_| scope.spawn(|| SMALL.prove(&prover, 3, &Control::new()).map(drop))).collect();
                    let token = CancelToken::new();
                    let cancel = token.clone();
                    let control = Control::new().with_cancel(token).with_progress(move |event| {
                        if event.stage == stage && event.elapsed.is_some() == ended {
                            cancel.cancel();
                        }
                    });
                    match SMALL.prove(&prover, 3, &control) {
                        Err(Error::Cancelled { .. }) => (),
                        // The last one had ended.
                        Ok(_) if stage == Stage::Verify && ended => (),
                        Ok(_) => panic!("{stage} goes on"),
                        Err(error) => panic!("{stage}: {error}"),
                    }
                    others.into_iter().for_each(|other| other.join().unwrap().unwrap());
                });
            }
        }
        is_calm(&prover);
    });
}

#[test]
fn a_progress_callback_that_panics_fails_its_call_and_no_other() {
    within(120, || {
        let prover = prover_of(gpus(2), config(Policy::PreferGpu));
        for stage in [Stage::Queue, Stage::Witness, Stage::Evaluate, Stage::SumB2, Stage::Verify] {
            for ended in [false, true] {
                thread::scope(|scope| {
                    let other = scope.spawn(|| SMALL.prove(&prover, 3, &Control::new()).map(drop));
                    let control = Control::new().with_progress(move |event| {
                        assert!(event.stage != stage || event.elapsed.is_some() != ended, "of the caller");
                    });
                    match SMALL.prove(&prover, 3, &control).map(drop).unwrap_err() {
                        Error::Panic { message, .. } => assert_eq!(message, "of the caller", "{stage}"),
                        error => panic!("{stage}: {error}"),
                    }
                    other.join().unwrap().unwrap();
                });
            }
        }
        is_calm(&prover);
    });
}

#[test]
fn a_deadline_ends_a_wait_in_time_and_the_others_go_on() {
    within(60, || {
        let gpus = gpus(1).proving(0, &[Step::Wait]);
        let prover = prover_of(gpus.clone(), Config { gpu_workers: Some(1), ..config(Policy::GpuOnly) });
        thread::scope(|scope| {
            let first = scope.spawn(|| SMALL.prove(&prover, 1, &Control::new()).map(drop));
            gpus.script.wait_for_waiting(1);
            let next = scope.spawn(|| SMALL.prove(&prover, 1, &Control::new()).map(drop));
            let begin = Instant::now();
            let late = Control::new().with_deadline(begin + Duration::from_millis(50));
            assert_eq!(SMALL.prove(&prover, 1, &late).map(drop).unwrap_err().code(), 401);
            assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
            gpus.script.go_on();
            first.join().unwrap().unwrap();
            next.join().unwrap().unwrap();
        });
        is_calm(&prover);
    });
}

#[test]
fn release_takes_a_device_away_in_the_middle_of_a_proof_which_is_made_all_the_same() {
    within(60, || {
        let gpus = gpus(2).proving(0, &[Step::Wait]).proving(1, &[Step::Wait]);
        let mut prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        prover.lanes.timing.pause = Duration::from_secs(2);
        let prover = &prover;
        thread::scope(|scope| {
            let call = scope.spawn(|| SMALL.prove(prover, 4, &Control::new()));
            gpus.script.wait_for_waiting(2);
            let begin = Instant::now();
            prover.release();
            assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
            let held: u64 = prover.status().devices.iter().map(|device| device.bytes).sum();
            assert_eq!(held, 0, "it is free when release returns");
            // A call that begins now may have a device at once; the other one leaves both alone for the pause.
            SMALL.prove(prover, 2, &Control::new()).unwrap();
            let made = call.join().unwrap().unwrap();
            assert!(begin.elapsed() >= Duration::from_secs(2));
            assert!(made.fallbacks.is_empty(), "nothing failed: {:?}", made.fallbacks);
            assert_eq!(made.device, "cuda:0, cuda:1");
            let mut ranges = gpus.script.ranges.lock().clone();
            [0..2, 3..5].into_iter().for_each(|pair| ranges[pair].sort_by_key(|(device, _)| *device));
            assert_eq!(ranges, [(0, 0..2), (1, 2..4), (0, 0..2), (0, 0..2), (1, 2..4)]);
        });
        is_calm(prover);
    });
}

#[test]
fn a_proof_that_was_interrupted_can_be_cancelled_and_has_its_deadline() {
    within(60, || {
        let gpus = gpus(1).proving(0, &[Step::Wait; 2]);
        let mut prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
        prover.lanes.timing.pause = Duration::from_secs(1000);
        let (token, prover) = (CancelToken::new(), &prover);
        thread::scope(|scope| {
            let begin = Instant::now();
            let late = Control::new().with_deadline(begin + Duration::from_millis(300));
            let late = scope.spawn(move || SMALL.prove(prover, 1, &late).map(drop).unwrap_err().code());
            gpus.script.wait_for_waiting(1);
            let cancelled = Control::new().with_cancel(token.clone());
            let cancelled = scope.spawn(move || SMALL.prove(prover, 1, &cancelled).map(drop).unwrap_err().code());
            eventually("two proofs on the device", || prover.status().devices[0].partitions == 2);
            prover.release();
            token.cancel();
            assert_eq!(cancelled.join().unwrap(), 400);
            assert_eq!(late.join().unwrap(), 401);
            assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        });
        is_calm(prover);
    });
}

#[test]
fn releases_one_after_the_other_only_delay_proofs() {
    within(120, || {
        let mut prover = prover_of(gpus(2), config(Policy::GpuOnly));
        prover.lanes.timing.pause = Duration::from_millis(2);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2 {
                        let made = SMALL.prove(&prover, 3, &Control::new()).unwrap();
                        assert!(made.fallbacks.is_empty(), "{:?}", made.fallbacks);
                    }
                });
            }
            for round in 0..12 {
                prover.release();
                thread::sleep(Duration::from_millis(7 * round));
            }
        });
        is_calm(&prover);
    });
}

#[test]
fn shutdown_drains_or_stops_and_later_calls_are_refused() {
    within(60, || {
        // One computes, one has witnesses, one waits.
        let with_three = |drain: Duration, go_on: bool| {
            let gpus = gpus(1).proving(0, &[Step::Wait; 3]);
            let prover = prover_of(gpus.clone(), config(Policy::GpuOnly));
            thread::scope(|scope| {
                let calls: Vec<_> =
                    (0..3).map(|_| scope.spawn(|| SMALL.prove(&prover, 1, &Control::new()).map(drop))).collect();
                gpus.script.wait_for_waiting(1);
                eventually("one call that waits", || prover.status().waiting == 1);
                let begin = Instant::now();
                let over = scope.spawn(|| prover.shutdown(drain));
                eventually("no more calls", || prover.status().shut_down);
                assert!(matches!(SMALL.prove(&prover, 1, &Control::new()).map(drop), Err(Error::ShutDown)));
                if go_on {
                    gpus.script.go_on();
                }
                let codes: Vec<i32> = calls
                    .into_iter()
                    .map(|call| call.join().unwrap().map_or_else(|error| error.code(), |()| 0))
                    .collect();
                let drained = over.join().unwrap();
                is_calm(&prover);
                assert_eq!(prover.status().devices[0].bytes, 0);
                assert_eq!(prover.check(b"", 0, None, &Control::new()).map(drop).unwrap_err().code(), 305);
                assert!(prover.shutdown(Duration::MAX), "nothing is left");
                (codes, drained, begin.elapsed())
            })
        };
        let (codes, drained, _) = with_three(Duration::MAX, true);
        assert_eq!((codes, drained), (vec![0; 3], true));
        let (codes, drained, elapsed) = with_three(Duration::ZERO, false);
        assert_eq!((codes, drained), (vec![305; 3], false));
        assert!(elapsed < SOON, "{elapsed:?}");
        let (codes, drained, elapsed) = with_three(Duration::from_millis(100), false);
        assert_eq!((codes, drained), (vec![305; 3], false));
        assert!(elapsed >= Duration::from_millis(100) && elapsed < SOON, "{elapsed:?}");
    });
}

#[test]
fn a_proof_that_falls_back_to_the_cpu_waits_for_the_bytes_that_it_takes_there() {
    within(60, || {
        // Room for the CPU's part once, and all of them fall back at the same time.
        let load = SMALL.load(1);
        let shared = CpuBackend::default().host_memory(&load);
        let budget = 2 * shared + 4 * load.witness_bytes();
        let gpus = gpus(1).proving(0, &[Step::NoMemory; 6]);
        let prover =
            prover_of(gpus, Config { memory: Some(budget), gpu_workers: Some(6), ..config(Policy::PreferGpu) });
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let made = SMALL.prove(&prover, 1, &Control::new()).unwrap();
                    assert_eq!((made.device.as_str(), made.fallbacks.len()), ("cpu", 1));
                });
            }
        });
        assert!(prover.status().host_peak <= budget);
        is_calm(&prover);
    });
}
