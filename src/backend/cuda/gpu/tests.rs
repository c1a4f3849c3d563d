use super::emulated::{self, census};
use super::*;
use crate::backend::cuda::testing;
use crate::error::{Class, Error, Result};
use crate::pipeline::Trace;

/// The mixing function of selftest.cu.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Mixes numbers on the device and compares them and their sum.
fn mix_on(gpu: &Gpu, count: usize) -> Result<()> {
    let input: Vec<u64> = (0..count as u64).map(|i| i * i + 3).collect();
    let stream = gpu.stream()?;
    let (from, to) = (gpu.allocate::<u64>(count, "input")?, gpu.allocate::<u64>(count, "output")?);
    let sum = gpu.allocate::<u64>(1, "sum")?;
    stream.upload(from.span(), &input)?;
    stream.zero(sum.span())?;
    let grid = count.div_ceil(256) as u32;
    stream.launch("selftest_mix", grid, 256, 0, &args![from.span(), to.span(), count as u64, 7u64, sum.span()])?;
    let (mut output, mut total) = (vec![0; count], [0]);
    stream.download(to.span(), &mut output)?;
    stream.download(sum.span(), &mut total)?;
    let expected: Vec<u64> = input.iter().map(|&x| mix(x + 7)).collect();
    assert_eq!(total[0], expected.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x)));
    assert_eq!(output, expected);
    Ok(())
}

#[test]
fn kernels_run_with_barriers_shuffles_and_atomics() {
    let gpu = testing::gpu();
    for count in [1, 31, 256, 1000] {
        mix_on(&gpu, count).unwrap();
    }
}

#[test]
fn dynamic_shared_memory_is_there_also_beyond_the_first_48_kilobytes() {
    let gpu = testing::gpu();
    let stream = gpu.stream().unwrap();
    let words: Vec<u32> = (0..1024).collect();
    for shared in [1024, 48 << 10, 100 << 10] {
        if shared > gpu.properties().shared_optin {
            continue;
        }
        let buffer = gpu.allocate::<u32>(1024, "words").unwrap();
        stream.upload(buffer.span(), &words).unwrap();
        stream.launch("selftest_reverse", 4, 256, shared, &args![buffer.span()]).unwrap();
        let mut reversed = vec![0; 1024];
        stream.download(buffer.span(), &mut reversed).unwrap();
        let expected: Vec<u32> = words.chunks(256).flat_map(|block| block.iter().rev()).copied().collect();
        assert_eq!(reversed, expected);
    }
}

#[test]
fn copies_reach_exactly_their_spans() {
    let gpu = testing::gpu();
    let stream = gpu.stream().unwrap();
    let buffer = gpu.allocate::<[u32; 2]>(8, "pairs").unwrap();
    stream.zero(buffer.span()).unwrap();
    stream.upload(buffer.span().slice(2..4), &[[1, 2], [3, 4]]).unwrap();
    stream.copy(buffer.span().slice(6..), buffer.span().slice(2..=3)).unwrap();
    let mut words = vec![9u32; 16];
    stream.download(buffer.span().cast(), &mut words).unwrap();
    assert_eq!(words, [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(buffer.span().slice(3..).address(), buffer.span().address() + 24);
    // Nothing to do is no error.
    stream.zero(buffer.span().slice(8..)).unwrap();
    stream.upload(gpu.allocate::<u32>(0, "nothing").unwrap().span(), &[]).unwrap();
    stream.launch("selftest_reverse", 0, 256, 0, &[]).unwrap();
}

#[test]
#[should_panic(expected = "not within a span of 4 values")]
fn a_slice_outside_a_span_panics() {
    let gpu = testing::gpu();
    gpu.allocate::<u32>(4, "words").unwrap().span().slice(3..5);
}

#[test]
fn pinned_memory_copies_both_ways_and_events_order_streams() {
    let gpu = testing::gpu();
    let (first, second) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    let (begin, copied) = (gpu.event().unwrap(), gpu.event().unwrap());
    let mut pinned = gpu.pinned::<u32>(4096, "staging").unwrap();
    assert!(pinned.iter().all(|&word| word == 0));
    pinned.iter_mut().zip(0..).for_each(|(word, i)| *word = i);
    let buffer = gpu.allocate::<u32>(1024, "words").unwrap();
    first.record(&begin).unwrap();
    // SAFETY: the values stay as they are until the stream was waited for.
    unsafe { first.upload_later(buffer.span(), &pinned, 1024) }.unwrap();
    first.record(&copied).unwrap();
    second.wait(&copied).unwrap();
    let mut back = gpu.pinned::<u32>(1024, "result").unwrap();
    // SAFETY: read after the stream was waited for.
    unsafe { second.download_later(buffer.span(), &mut back, 0) }.unwrap();
    second.synchronize().unwrap();
    assert!(back.iter().copied().eq(1024..2048));
    copied.synchronize().unwrap();
    assert!(copied.since(&begin).unwrap() >= 0.0);
    // A plain upload from pinned memory waits: the values may change at once.
    first.upload(buffer.span(), &pinned[..1024]).unwrap();
    pinned.fill(5);
    let mut words = vec![0; 1024];
    first.download(buffer.span(), &mut words).unwrap();
    assert!(words.iter().copied().eq(0..1024));
}

#[test]
fn wrong_launches_are_refused_before_they_run() {
    let gpu = testing::gpu();
    let stream = gpu.stream().unwrap();
    let words = gpu.allocate::<u32>(1024, "words").unwrap();
    let unknown = stream.launch("no_such_kernel", 1, 32, 0, &[]).unwrap_err();
    assert!(unknown.to_string().contains("no_such_kernel"), "{unknown}");
    assert!(stream.launch("selftest_reverse", 1, 512, 2048, &args![words.span()]).is_err());
    assert!(stream.launch("selftest_reverse", 1, 2048, 0, &args![words.span()]).is_err());
    assert!(stream.launch("selftest_reverse", 1, 256, 1 << 20, &args![words.span()]).is_err());
    // Drivers before CUDA 12.4 do not tell the parameters.
    if emulated::wanted() {
        let short = stream.launch("selftest_reverse", 1, 256, 1024, &args![1u32]).unwrap_err();
        assert!(short.to_string().contains("parameters of [8] bytes, was given [4]"), "{short}");
    }
    assert!(!gpu.is_lost());
    mix_on(&gpu, 100).unwrap();
}

#[test]
fn too_much_memory_is_an_error_with_numbers() {
    let Some(_machine) = testing::machine() else { return };
    emulated::set_memory(1 << 20);
    let gpu = Gpu::open(0).unwrap();
    let _half = gpu.allocate::<u64>(1 << 16, "half").unwrap();
    assert_eq!(gpu.free_memory().unwrap(), 1 << 19);
    match gpu.allocate::<u64>(1 << 17, "too much").unwrap_err() {
        Error::Memory { what, needed, available, .. } => {
            assert_eq!((needed, available), (1 << 20, 1 << 19));
            assert!(what.contains("too much") && what.contains("cuda:0"), "{what}");
        }
        other => panic!("{other}"),
    }
    // Lengths that do not fit into an address are too much as well.
    assert!(matches!(gpu.allocate::<u64>(usize::MAX, "all").unwrap_err(), Error::Memory { .. }));
    assert!(!gpu.is_lost());
    mix_on(&gpu, 100).unwrap();
}

#[test]
fn every_call_that_fails_is_an_error_with_its_name_and_leaves_nothing() {
    let Some(_machine) = testing::machine() else { return };
    let calls = [
        "cuCtxCreate",
        "cuCtxPushCurrent",
        "cuModuleLoadData",
        "cuModuleGetFunction",
        "cuMemAlloc",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemsetD8Async",
        "cuStreamCreate",
        "cuStreamSynchronize",
        "cuLaunchKernel",
    ];
    for (code, sticky) in [(1, false), (700, true)] {
        for call in calls {
            emulated::fault(call, 0, code, sticky);
            let error = Gpu::open(0).and_then(|gpu| mix_on(&gpu, 300)).expect_err(call);
            assert!(error.to_string().contains(call) && error.class() == Class::Resource, "{call}: {error}");
            assert_eq!(matches!(error, Error::DeviceLost { .. }), sticky, "{call}: {error}");
            assert_eq!(census(), Default::default(), "after {call} failed");
        }
    }
    mix_on(&Gpu::open(0).unwrap(), 300).unwrap();
}

#[test]
fn a_lost_context_fails_at_once_and_a_new_one_works() {
    let Some(_machine) = testing::machine() else { return };
    let gpu = Gpu::open(0).unwrap();
    let (stream, buffer) = (gpu.stream().unwrap(), gpu.allocate::<u32>(10, "words").unwrap());
    let pinned = gpu.pinned::<u32>(10, "staging").unwrap();
    emulated::fault("cuStreamSynchronize", 1, 719, true);
    stream.synchronize().unwrap();
    assert!(matches!(stream.synchronize(), Err(Error::DeviceLost { .. })));
    assert!(gpu.is_lost());
    for error in [stream.zero(buffer.span()).err(), gpu.stream().err(), gpu.allocate::<u8>(1, "more").err()] {
        let error = error.unwrap();
        assert!(matches!(&error, Error::DeviceLost { detail, .. } if detail.contains("719")), "{error}");
    }
    // The old context may still be held when the new one is opened.
    let new = Gpu::open(0).unwrap();
    mix_on(&new, 300).unwrap();
    drop((stream, buffer, pinned, gpu));
    mix_on(&new, 300).unwrap();
    drop(new);
    assert_eq!(census(), Default::default());
}

#[test]
fn a_kernel_that_writes_past_an_allocation_loses_the_context() {
    let Some(_machine) = testing::machine() else { return };
    let gpu = Gpu::open(0).unwrap();
    let (stream, words) = (gpu.stream().unwrap(), gpu.allocate::<u32>(250, "words").unwrap());
    stream.zero(words.span()).unwrap();
    let error = stream.launch("selftest_reverse", 1, 256, 1024, &args![words.span()]).unwrap_err();
    assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
    assert!(gpu.is_lost());
    drop((stream, words, gpu));
    assert_eq!(census(), Default::default());
}

#[test]
fn copies_outside_an_allocation_are_refused() {
    let Some(_machine) = testing::machine() else { return };
    let gpu = Gpu::open(0).unwrap();
    let stream = gpu.stream().unwrap();
    let stale = gpu.allocate::<u32>(10, "words").unwrap().span();
    assert!(matches!(stream.zero(stale), Err(Error::DeviceCall { call: "cuMemsetD8Async", code: 1, .. })));
    assert!(!gpu.is_lost());
}

#[test]
fn a_device_that_the_build_has_no_kernels_for_is_named_with_its_capability() {
    let Some(_machine) = testing::machine() else { return };
    emulated::fault("cuModuleLoadData", 0, 209, false);
    let error = Gpu::open(0).unwrap_err();
    assert_eq!(error.code(), 302);
    assert!(error.to_string().contains("compute capability is 9.0"), "{error}");
    assert_eq!(census(), Default::default());
}

#[test]
fn devices_are_listed_and_work_beside_each_other() {
    let Some(_machine) = testing::machine() else { return };
    assert_eq!(properties_of_all().unwrap().len(), 1);
    assert_eq!(Gpu::open(1).unwrap_err().code(), 302);
    emulated::set_devices(2);
    let all = properties_of_all().unwrap();
    let ordinals: Vec<u32> = all.iter().map(|properties| properties.ordinal).collect();
    assert_eq!(ordinals, [0, 1]);
    assert_ne!(all[0].uuid, all[1].uuid);
    assert!(all[0].uuid.starts_with("GPU-") && all[0].uuid.len() == 40, "{}", all[0].uuid);
    assert_eq!((all[1].compute, all[1].memory), ((9, 0), 4 << 30));
    let (first, second) = (Gpu::open(0).unwrap(), Gpu::open(1).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| mix_on(&first, 1000).unwrap());
        scope.spawn(|| mix_on(&second, 1000).unwrap());
    });
    // Memory of one device is none of the other's.
    let buffer = second.allocate::<u32>(4, "words").unwrap();
    assert!(first.stream().unwrap().zero(buffer.span()).is_err());
    emulated::set_devices(0);
    assert!(properties_of_all().unwrap().is_empty());
}

#[test]
fn nothing_is_left_after_many_rounds() {
    let Some(_machine) = testing::machine() else { return };
    let gpu = Gpu::open(0).unwrap();
    mix_on(&gpu, 10).unwrap();
    let before = census();
    for _ in 0..100 {
        mix_on(&gpu, 300).unwrap();
        gpu.pinned::<u64>(100, "staging").unwrap();
        gpu.event().unwrap();
    }
    assert_eq!(census(), before);
    drop(gpu);
    assert_eq!(census(), Default::default());
}

#[test]
fn traces_hold_what_was_queued_while_they_were_on_and_leave_nothing() {
    let Some(_machine) = testing::machine() else { return };
    let gpu = Gpu::open(0).unwrap();
    let trace = Trace::new();
    mix_on(&gpu, 300).unwrap();
    let before = census();
    gpu.queue_for("ignored", None);
    gpu.traced(Some(&trace), || {
        gpu.queue_for("mixing", Some(3));
        mix_on(&gpu, 300)
    })
    .unwrap();
    mix_on(&gpu, 300).unwrap();
    assert_eq!(gpu.traced(None, || Ok(7)).unwrap(), 7);
    // What was noted before an error belongs to nobody.
    gpu.traced(Some(&trace), || mix_on(&gpu, 300).and_then(|()| gpu.allocate::<u8>(usize::MAX, "all").map(drop)))
        .unwrap_err();
    assert_eq!(census(), before);
    let json = trace.to_json();
    let events: Vec<_> = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
    let of_name = |name: &str| -> Vec<_> { events.iter().filter(|event| event["name"] == name).collect() };
    let counts = ["upload", "zero", "selftest_mix", "download", "wait"].map(|name| of_name(name).len());
    assert_eq!((counts, events.len()), ([1, 1, 1, 2, 2], 7));
    assert!(events.iter().all(|event| event["args"]["stage"] == "mixing" && event["args"]["partition"] == 3));
    assert_eq!(of_name("selftest_mix")[0]["args"]["blocks"], 2);
    assert_eq!(of_name("upload")[0]["args"]["bytes"], 2400);
    let time = |event: &serde_json::Value, field: &str| event[field].as_f64().unwrap();
    let (upload, kernel) = (of_name("upload")[0], of_name("selftest_mix")[0]);
    assert!(time(kernel, "ts") >= time(upload, "ts") + time(upload, "dur") - 1.0, "one stream, one after the other");
    assert!(time(&kernel["args"], "queued") <= time(kernel, "ts") + time(kernel, "dur") + 1.0);
}
