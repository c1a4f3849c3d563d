/*
 * cuporep: Groth16 seal proofs (PoRep, commit phase 2, "C2") for Filecoin storage providers.
 *
 * This header is the manual. It is generated from src/ffi; change it there.
 *
 * Results.  Every function that can fail returns 0 or a number of `enum cuporep_status`. The number divided by
 * 100 is its class (`enum cuporep_class`), which says whether trying again can help. Numbers never change their
 * meaning; later versions may add some, but none whose last two digits are 90 to 99: those are left to bindings in
 * other languages.
 *
 * Messages.  `err` is a buffer of the caller of `err_cap` bytes, or NULL with 0. On failure it receives what is
 * wrong, where, and what to do, in UTF-8, NUL-ended, cut at a character if it is too long; on success the empty
 * text. 1024 bytes hold nearly all messages. Nothing is ever written to standard output or standard error.
 *
 * Arguments.  In the order: handle, outputs, inputs. A length follows its pointer. NULL with length 0 is an empty
 * slice; NULL with another length, or where nothing else is said, is CUPOREP_STATUS_ARGUMENT. Outputs are written
 * completely or not at all; where a function says what it writes on failure, that is all.
 *
 * Structs.  The first member `struct_size` is set by the caller to the sizeof of its own header's struct, so that
 * later versions can add members. All other members may be zero, which means the default. A size that this version
 * does not know is CUPOREP_STATUS_ARGUMENT.
 *
 * Ownership.  Inputs are only read during the call, and no pointer to them is kept. What a `_new` or `_default`
 * function makes is freed by its `_free` function; freeing NULL does nothing. Strings that are returned are static.
 *
 * Threads.  Every function may be called from any thread, at the same time, on the same handles; only no call may
 * begin on a handle that is being freed. 256 KiB of stack suffice: heavy work runs on the library's own threads.
 *
 * Many proofs.  A call first checks its input. Then it waits until its bytes of host memory are free and fewer than
 * `gpu_workers` proofs are in work on the devices that it needs; only then are its witnesses made. The oldest call is
 * first, and each level of priority counts as ten seconds of age, so that nobody waits for ever. What can never fit is
 * refused at once. Where there are as many proofs, in work or waiting, as devices that they may use, each goes whole to
 * the device with the fewest; where there are fewer, the partitions of a proof are spread over the idle devices. A device
 * computes for one proof at a time. One that fails is passed over for a minute, and its partitions are made elsewhere
 * within the call.
 *
 * Fork.  Nothing is started before the first call. A process may fork before it; a child that is forked later must
 * make its own handles (handles of its parent are refused), while `prove_porep` and cuporep_prover_default() do so
 * by themselves.
 *
 * Callbacks.  May come from any thread, never two at once for one call, and only while that call runs. They should
 * return soon and not throw: after a C++ exception or a Rust panic that leaves one, it is not called again, and the
 * work goes on. From a callback only cuporep_cancel_token_cancel() may be called.
 *
 * Environment, read at call time where the configuration says nothing: FIL_PROOFS_PARAMETER_CACHE (directory of the
 * parameters), BELLMAN_NO_GPU (anything but 0: the CPU), CUPOREP_CACHE_DIR, CUPOREP_THREADS, CUPOREP_MEMORY,
 * CUPOREP_GPU_WORKERS.
 */


#ifndef CUPOREP_H
#define CUPOREP_H

#include <stddef.h>
#include <stdint.h>

/** The version that this header belongs to; compare with cuporep_version(). */
#define CUPOREP_VERSION "0.1.0"

/**
 * A proof buffer of this many bytes is large enough for every registered proof.
 */
#define CUPOREP_PROOF_BYTES_MAX 24192

/**
 * Entries of `stage_ns` in a report; more than there are stages.
 */
#define CUPOREP_STAGES_MAX 32

/**
 * What a function returns.
 */
enum cuporep_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    CUPOREP_STATUS_OK = 0,
    /**
     * An argument is out of range or malformed, or a pointer is NULL.
     */
    CUPOREP_STATUS_ARGUMENT = 100,
    /**
     * The bytes are not a C1 output in any accepted form.
     */
    CUPOREP_STATUS_C1_FORM = 101,
    /**
     * The JSON breaks off, is malformed, or has fields of the wrong kind.
     */
    CUPOREP_STATUS_C1_SYNTAX = 102,
    /**
     * The input is larger than any C1 output can be.
     */
    CUPOREP_STATUS_C1_TOO_LARGE = 103,
    /**
     * This version cannot prove the registered proof.
     */
    CUPOREP_STATUS_PROOF_TYPE = 104,
    /**
     * A count, a length or a tree shape is not that of the registered proof.
     */
    CUPOREP_STATUS_C1_SHAPE = 105,
    /**
     * An element is not a canonical field element, or is zero where that is forbidden.
     */
    CUPOREP_STATUS_C1_ELEMENT = 106,
    /**
     * The C1 output does not belong to this sector number and miner.
     */
    CUPOREP_STATUS_C1_IDENTITY = 107,
    /**
     * A challenge or a parent is not the one that the sector's ids give.
     */
    CUPOREP_STATUS_C1_CHALLENGE = 108,
    /**
     * The vanilla proof does not verify.
     */
    CUPOREP_STATUS_C1_VANILLA = 109,
    /**
     * A proof that was given for verification has the wrong form.
     */
    CUPOREP_STATUS_PROOF_FORM = 110,
    /**
     * A proof that was given for verification is well formed and not valid.
     */
    CUPOREP_STATUS_PROOF_INVALID = 111,
    /**
     * The witness does not satisfy the circuit.
     */
    CUPOREP_STATUS_UNSATISFIED = 112,
    /**
     * The proof buffer is too small; the needed length was reported.
     */
    CUPOREP_STATUS_PROOF_BUFFER = 113,
    /**
     * The buffer for a text is too small; the needed length was reported.
     */
    CUPOREP_STATUS_TEXT_BUFFER = 114,
    /**
     * A parameter file does not exist.
     */
    CUPOREP_STATUS_PARAMS_MISSING = 200,
    /**
     * A parameter file cannot be read.
     */
    CUPOREP_STATUS_PARAMS_READ = 201,
    /**
     * A parameter file has the wrong size.
     */
    CUPOREP_STATUS_PARAMS_SIZE = 202,
    /**
     * A parameter file's content is not what it must be.
     */
    CUPOREP_STATUS_PARAMS_CONTENT = 203,
    /**
     * A parameter file's digest is not the expected one.
     */
    CUPOREP_STATUS_PARAMS_DIGEST = 204,
    /**
     * A parameter file changed while it was in use.
     */
    CUPOREP_STATUS_PARAMS_CHANGED = 205,
    /**
     * An operation on parameters is refused because it would be unsafe.
     */
    CUPOREP_STATUS_PARAMS_REFUSED = 206,
    /**
     * The work cannot fit into memory.
     */
    CUPOREP_STATUS_MEMORY = 300,
    /**
     * A file other than a parameter file cannot be read or written.
     */
    CUPOREP_STATUS_IO = 301,
    /**
     * The requested device does not exist or cannot be used.
     */
    CUPOREP_STATUS_DEVICE = 302,
    /**
     * A call of a device's driver failed; the device can still be used.
     */
    CUPOREP_STATUS_DEVICE_CALL = 303,
    /**
     * A device's context is spoiled by an error; it is opened anew for the next call.
     */
    CUPOREP_STATUS_DEVICE_LOST = 304,
    /**
     * The prover was shut down.
     */
    CUPOREP_STATUS_SHUT_DOWN = 305,
    /**
     * The caller cancelled.
     */
    CUPOREP_STATUS_CANCELLED = 400,
    /**
     * The deadline passed.
     */
    CUPOREP_STATUS_DEADLINE = 401,
    /**
     * An invariant of this library does not hold.
     */
    CUPOREP_STATUS_INTERNAL = 500,
    /**
     * A panic was caught; the message has its text and place.
     */
    CUPOREP_STATUS_PANIC = 501,
    /**
     * A proof that this library made did not verify, and was withheld.
     */
    CUPOREP_STATUS_SELF_CHECK = 502,
    /**
     * A transform computed wrongly: faulty memory or device, or a fault of this library.
     */
    CUPOREP_STATUS_TRANSFORM = 503,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cuporep_status cuporep_status;
#else
typedef int32_t cuporep_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A status divided by 100: what to do about it.
 */
enum cuporep_class
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    CUPOREP_CLASS_OK = 0,
    /**
     * The input is wrong; the same call fails again.
     */
    CUPOREP_CLASS_INPUT = 1,
    /**
     * Proving parameters are missing, damaged or not the right ones.
     */
    CUPOREP_CLASS_PARAMETERS = 2,
    /**
     * Memory, disk or device; the same call may succeed later or elsewhere.
     */
    CUPOREP_CLASS_RESOURCE = 3,
    /**
     * The caller cancelled or the deadline passed.
     */
    CUPOREP_CLASS_CANCELLED = 4,
    /**
     * A fault of this library.
     */
    CUPOREP_CLASS_INTERNAL = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cuporep_class cuporep_class;
#else
typedef int32_t cuporep_class;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A stage of a proof.
 */
enum cuporep_stage
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Waiting for other proofs of the same prover.
     */
    CUPOREP_STAGE_QUEUE = 0,
    /**
     * Decoding the C1 bytes.
     */
    CUPOREP_STAGE_DECODE = 1,
    /**
     * Checking the C1 output.
     */
    CUPOREP_STAGE_CHECK = 2,
    /**
     * Loading or recording the circuit's shape.
     */
    CUPOREP_STAGE_SHAPE = 3,
    /**
     * Opening, checking and loading parameters.
     */
    CUPOREP_STAGE_PARAMETERS = 4,
    /**
     * Making the witness.
     */
    CUPOREP_STAGE_WITNESS = 5,
    /**
     * a = A w and b = B w.
     */
    CUPOREP_STAGE_EVALUATE = 6,
    /**
     * Transforms of the quotient.
     */
    CUPOREP_STAGE_TRANSFORM = 7,
    /**
     * The sum over h.
     */
    CUPOREP_STAGE_SUM_H = 8,
    /**
     * The sum over l.
     */
    CUPOREP_STAGE_SUM_L = 9,
    /**
     * The sum over a.
     */
    CUPOREP_STAGE_SUM_A = 10,
    /**
     * The sum over b in G1.
     */
    CUPOREP_STAGE_SUM_B1 = 11,
    /**
     * The sum over b in G2.
     */
    CUPOREP_STAGE_SUM_B2 = 12,
    /**
     * Assembling and verifying the proof.
     */
    CUPOREP_STAGE_VERIFY = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cuporep_stage cuporep_stage;
#else
typedef int32_t cuporep_stage;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which kinds of devices may make a proof.
 */
enum cuporep_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * In a request: as the prover has it. In a configuration: the CPU if BELLMAN_NO_GPU asks for it, else
     * CUPOREP_POLICY_PREFER_GPU.
     */
    CUPOREP_POLICY_DEFAULT = 0,
    /**
     * GPUs; where there is none that works, an error.
     */
    CUPOREP_POLICY_GPU_ONLY = 1,
    /**
     * GPUs where there are any that work, else the CPU.
     */
    CUPOREP_POLICY_PREFER_GPU = 2,
    /**
     * The CPU.
     */
    CUPOREP_POLICY_CPU = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cuporep_policy cuporep_policy;
#else
typedef int32_t cuporep_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How much a log line matters.
 */
enum cuporep_log_level
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Nothing.
     */
    CUPOREP_LOG_LEVEL_OFF = 0,
    /**
     * Something failed.
     */
    CUPOREP_LOG_LEVEL_ERROR = 1,
    /**
     * Something is not as it should be.
     */
    CUPOREP_LOG_LEVEL_WARN = 2,
    /**
     * Each proof, with its result.
     */
    CUPOREP_LOG_LEVEL_INFO = 3,
    /**
     * For finding faults.
     */
    CUPOREP_LOG_LEVEL_DEBUG = 4,
    /**
     * Everything.
     */
    CUPOREP_LOG_LEVEL_TRACE = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cuporep_log_level cuporep_log_level;
#else
typedef int32_t cuporep_log_level;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Stops calls that carry it.
 */
typedef struct cuporep_cancel_token cuporep_cancel_token;

/**
 * Makes proofs; keeps parameters and circuits between calls.
 */
typedef struct cuporep_prover cuporep_prover;

/**
 * How a prover is set up. All zero but `struct_size`: everything from the environment, else from defaults.
 */
typedef struct cuporep_config {
    /**
     * sizeof(struct cuporep_config).
     */
    size_t struct_size;
    /**
     * Directory of the proving parameters. NULL or empty: FIL_PROOFS_PARAMETER_CACHE, else
     * /var/tmp/filecoin-proof-parameters.
     */
    const char *parameter_dir;
    /**
     * Directory for recorded circuits and file digests. NULL or empty: CUPOREP_CACHE_DIR, else `cuporep-cache`
     * beside the parameters, else the user's cache directory.
     */
    const char *cache_dir;
    /**
     * Indices of the devices to use, as cuporep_device_info() counts them. NULL with 0: all.
     */
    const uint32_t *devices;
    /**
     * Length of `devices`.
     */
    size_t devices_len;
    /**
     * One of `enum cuporep_policy`.
     */
    int32_t policy;
    /**
     * Threads of the CPU backend. 0: CUPOREP_THREADS, else one per core.
     */
    uint32_t threads;
    /**
     * Bytes of host memory that all proofs together may take, with what stays loaded between them. 0: CUPOREP_MEMORY,
     * else what the system has available.
     */
    uint64_t host_bytes;
    /**
     * Bytes of memory that may be used on each device. 0: what is free there.
     */
    uint64_t device_bytes;
    /**
     * The devices to use by name instead, separated by commas: `cuda:0`, or a UUID, or so much of its beginning that
     * only one device has it. NULL or empty: `devices`.
     */
    const char *device_names;
    /**
     * Proofs that are in work on each device at once, from 1 to 64: one computes there, the others' witnesses are made
     * and their bytes verified meanwhile. 0: CUPOREP_GPU_WORKERS, else 2.
     */
    uint64_t gpu_workers;
} cuporep_config;

/**
 * How a proof was made. On failure the stage times are those until then and all else is zero.
 */
typedef struct cuporep_report {
    /**
     * sizeof(struct cuporep_report), set by the caller.
     */
    size_t struct_size;
    /**
     * The number of the registered proof.
     */
    uint64_t registered_proof;
    /**
     * Partitions, of 192 bytes each.
     */
    uint32_t partitions;
    /**
     * 1: made with test parameters; the proof is worth nothing.
     */
    uint32_t insecure_parameters;
    /**
     * Attempts that failed on a device before one made the proof.
     */
    uint32_t fallbacks;
    /**
     * 1: the progress callback threw and was not called again.
     */
    uint32_t progress_failed;
    /**
     * Bytes of host memory that were set aside.
     */
    uint64_t host_bytes;
    /**
     * Bytes of device memory that were set aside.
     */
    uint64_t device_bytes;
    /**
     * The whole call, in nanoseconds.
     */
    uint64_t total_ns;
    /**
     * Nanoseconds by `enum cuporep_stage`; sums over partitions, which may run at the same time.
     */
    uint64_t stage_ns[CUPOREP_STAGES_MAX];
    /**
     * What made the proof, such as `cpu`; several are separated by commas.
     */
    char device[256];
    /**
     * Why those attempts failed, one a line, cut where there is no more room.
     */
    char fallback_reasons[1024];
} cuporep_report;

/**
 * What a progress callback is told.
 */
typedef struct cuporep_event {
    /**
     * sizeof(struct cuporep_event) of the library: members beyond it do not exist.
     */
    size_t struct_size;
    /**
     * The request id, or the empty text.
     */
    const char *request_id;
    /**
     * One of `enum cuporep_stage`.
     */
    int32_t stage;
    /**
     * The partition that the stage works on, or -1.
     */
    int32_t partition;
    /**
     * 0: the stage begins. 1: it has ended.
     */
    int32_t ended;
    /**
     * How long the stage took, in nanoseconds, if it has ended.
     */
    uint64_t elapsed_ns;
} cuporep_event;

/**
 * Is told the begin and the end of each stage. `event` is valid during the call only.
 */
typedef void (*cuporep_progress_fn)(void *user, const struct cuporep_event *event);

/**
 * One piece of work. Members that a function does not mention are ignored by it.
 */
typedef struct cuporep_request {
    /**
     * sizeof(struct cuporep_request).
     */
    size_t struct_size;
    /**
     * The output of seal commit phase 1: JSON, also in the envelope of lotus-bench.
     */
    const uint8_t *c1;
    /**
     * Length of `c1`.
     */
    size_t c1_len;
    /**
     * The sector number.
     */
    uint64_t sector_number;
    /**
     * The miner's actor id: 1000 for f01000.
     */
    uint64_t miner_actor_id;
    /**
     * Indices of the devices to use. NULL with 0: those of the prover.
     */
    const uint32_t *devices;
    /**
     * Length of `devices`.
     */
    size_t devices_len;
    /**
     * One of `enum cuporep_policy`.
     */
    int32_t policy;
    /**
     * From -100 to 100: each level counts as ten seconds of waiting.
     */
    int32_t priority;
    /**
     * Names the call in logs and events. NULL: no name.
     */
    const char *request_id;
    /**
     * Stops the call when it is cancelled. NULL: nothing does. May be freed while the call runs.
     */
    const struct cuporep_cancel_token *cancel_token;
    /**
     * 0: no deadline. 1: `deadline_ms` counts.
     */
    int32_t has_deadline;
    /**
     * Milliseconds from the begin of the call after which it stops; 0 has already passed.
     */
    uint64_t deadline_ms;
    /**
     * Is told the begin and the end of each stage. NULL: nobody is.
     */
    cuporep_progress_fn progress;
    /**
     * The first argument of `progress`.
     */
    void *progress_user;
    /**
     * 1: the miner is not known and `miner_actor_id` is ignored. The replica id is then taken as the C1 output has
     * it, and everything else is checked against it. 0: it must be that of the sector and the miner.
     */
    int32_t miner_unknown;
    /**
     * 1: the proof is what goes on chain, as seal commit phase 2 of a node returns it. That of a non-interactive
     * proof would be an aggregate, which this version does not make: CUPOREP_STATUS_PROOF_TYPE, before anything long
     * is done. 0: the proofs of the partitions, of every kind.
     */
    int32_t on_chain;
    /**
     * The devices to use by name instead, as in a configuration. NULL or empty: `devices`.
     */
    const char *device_names;
} cuporep_request;

/**
 * What is in a C1 output that passed all checks.
 */
typedef struct cuporep_c1_info {
    /**
     * sizeof(struct cuporep_c1_info), set by the caller.
     */
    size_t struct_size;
    /**
     * The number of the registered proof.
     */
    uint64_t registered_proof;
    /**
     * Bytes of the sector.
     */
    uint64_t sector_size;
    /**
     * Partitions.
     */
    size_t partitions;
    /**
     * Bytes of the proof.
     */
    size_t proof_len;
    /**
     * The commitment to the replica.
     */
    uint8_t comm_r[32];
    /**
     * The commitment to the data.
     */
    uint8_t comm_d[32];
} cuporep_c1_info;

/**
 * A device that can make proofs.
 */
typedef struct cuporep_device {
    /**
     * sizeof(struct cuporep_device), set by the caller.
     */
    size_t struct_size;
    /**
     * Bytes of its memory.
     */
    uint64_t memory;
    /**
     * The name that its maker gave it.
     */
    char name[256];
    /**
     * What tells it apart from all others.
     */
    char uuid[64];
    /**
     * Bytes of its memory that nobody holds; 0 where it cannot be asked.
     */
    uint64_t free_memory;
    /**
     * Its number, as in `cuda:0`.
     */
    uint32_t ordinal;
    /**
     * Its compute capability without the point: 90 for 9.0.
     */
    uint32_t compute_capability;
} cuporep_device;

/**
 * Receives log lines. `level` is one of `enum cuporep_log_level`; the texts are valid during the call only.
 */
typedef void (*cuporep_log_fn)(void *user, int32_t level, const char *target, const char *message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a seal proof: the whole job, with the process's default prover. Its parameters stay loaded for the next call.
 *
 * Checks the C1 output and the parameters, waits until memory and a device are free, proves every partition, verifies
 * the bytes.
 *
 * Returns: 0 or any status.
 * Out:     proof: 192 bytes a partition, in partition order; unchanged on failure.
 *          proof_len: bytes of the proof. If proof_cap is too small (CUPOREP_STATUS_PROOF_BUFFER, found before
 *          anything long is done), the needed length; 0 on all other failures.
 * In:      c1: output of seal commit phase 1, JSON.
 *          sector_number, miner_actor_id: of the sector; 1000 for f01000.
 */
int32_t prove_porep(uint8_t *proof,
                    size_t proof_cap,
                    size_t *proof_len,
                    char *err,
                    size_t err_cap,
                    const uint8_t *c1,
                    size_t c1_len,
                    uint64_t sector_number,
                    uint64_t miner_actor_id);

/**
 * Makes a prover. It starts its threads, and loads nothing yet.
 *
 * Returns: 0, or the status of a configuration that cannot be.
 * Out:     prover: to be freed by cuporep_prover_free(); NULL on failure.
 * In:      config: or NULL: everything from the environment, else from defaults.
 */
int32_t cuporep_prover_new(struct cuporep_prover **prover,
                           char *err,
                           size_t err_cap,
                           const struct cuporep_config *config);

/**
 * A handle to the process's default prover, which is the one of `prove_porep`.
 *
 * Returns: 0, or the status of an environment that cannot be.
 * Out:     prover: to be freed by cuporep_prover_free(), which leaves the prover itself; NULL on failure.
 */
int32_t cuporep_prover_default(struct cuporep_prover **prover,
                               char *err,
                               size_t err_cap);

/**
 * Frees a handle, with its prover unless that is the default one.
 *
 * Calls that are in progress keep the prover until they end; none may begin with the handle from now on.
 *
 * In:      prover: or NULL, which does nothing.
 */
void cuporep_prover_free(struct cuporep_prover *prover);

/**
 * Makes a seal proof, as prove_porep(), with a prover and a request.
 *
 * Returns: 0 or any status.
 * Out:     proof, proof_len: as with prove_porep().
 *          report: how it was made, or NULL; its struct_size must be set. Written on failure too.
 * In:      request: all of it.
 */
int32_t cuporep_prover_prove(const struct cuporep_prover *prover,
                             uint8_t *proof,
                             size_t proof_cap,
                             size_t *proof_len,
                             struct cuporep_report *report,
                             char *err,
                             size_t err_cap,
                             const struct cuporep_request *request);

/**
 * Checks a C1 output completely: form, counts, elements, ids, challenges, every hash. Needs no parameters.
 *
 * Returns: 0; CUPOREP_CLASS_INPUT: the message names partition, challenge and part; or cancelled.
 * Out:     info: what is in it, or NULL; its struct_size must be set. Zero on failure.
 * In:      request: c1, sector_number, miner_actor_id, and what stops or watches the call.
 */
int32_t cuporep_check_c1(const struct cuporep_prover *prover,
                         struct cuporep_c1_info *info,
                         char *err,
                         size_t err_cap,
                         const struct cuporep_request *request);

/**
 * Verifies a proof against the public inputs that the ids of a C1 output give. Checks the C1 output first.
 * It verifies the proofs of the partitions, for a known miner.
 *
 * Returns: 0: the proof is valid. CUPOREP_STATUS_PROOF_INVALID, CUPOREP_STATUS_PROOF_FORM, or another.
 * In:      request: c1, sector_number, miner_actor_id, and what stops or watches the call.
 *          proof: 192 bytes a partition.
 */
int32_t cuporep_verify(const struct cuporep_prover *prover,
                       char *err,
                       size_t err_cap,
                       const struct cuporep_request *request,
                       const uint8_t *proof,
                       size_t proof_len);

/**
 * Opens, checks and loads the parameters of a sector size and loads or records its circuit, so that the first proof
 * need not; on all devices that the prover uses. Waits as a proof does.
 *
 * Returns: 0; CUPOREP_CLASS_PARAMETERS; or another.
 * In:      sector_size: bytes of the sector, such as 34359738368.
 *          request: what stops or watches the call, or NULL.
 */
int32_t cuporep_preload(const struct cuporep_prover *prover,
                        char *err,
                        size_t err_cap,
                        uint64_t sector_size,
                        const struct cuporep_request *request);

/**
 * Forgets the parameters and the circuit of a sector size. A proof that is being made keeps them until it ends.
 *
 * Returns: 0, CUPOREP_STATUS_ARGUMENT for an unknown size.
 * In:      sector_size: bytes of the sector.
 */
int32_t cuporep_evict(const struct cuporep_prover *prover,
                      char *err,
                      size_t err_cap,
                      uint64_t sector_size);

/**
 * Gives back all memory that is kept between proofs, and all memory of devices, also in the middle of a proof: within
 * 500 ms it is free when this returns.
 *
 * A proof that was interrupted waits for a second, then takes the device again when its turn comes, loads again and
 * makes anew what was interrupted, within its call; so do calls that waited already. Its cancel token and deadline count
 * meanwhile. Calls that begin after this returned may take the device at once. A proof on the CPU keeps what it needs
 * until it ends.
 *
 * Returns: 0.
 */
int32_t cuporep_release(const struct cuporep_prover *prover,
                        char *err,
                        size_t err_cap);

/**
 * Ends a prover's work: accepts no more calls, lets those in progress, waiting ones included, end for so long, stops
 * the rest, and gives everything back. Refused and stopped calls return CUPOREP_STATUS_SHUT_DOWN; stopping takes at
 * most 500 ms. Returns when no call is in progress any more. The handle is still to be freed.
 *
 * Through any handle of the default prover it ends that for the whole process. Not to be called from a callback.
 *
 * Returns: 0.
 * Out:     stopped: 1 if a call had to be stopped, else 0; or NULL.
 * In:      drain_ms: milliseconds. 0: stop all now. UINT64_MAX: wait as long as they take.
 */
int32_t cuporep_prover_shutdown(const struct cuporep_prover *prover,
                                int32_t *stopped,
                                char *err,
                                size_t err_cap,
                                uint64_t drain_ms);

/**
 * What the prover has done and how it is: counters, histograms and gauges in Prometheus' text format (version 0.0.4), to
 * be served to a scraper as it is. Cheap, and waits for no proof. The metrics are listed in the documentation of the
 * Rust function `Prover::metrics` and in the README. For prove_porep() use the handle of cuporep_prover_default().
 *
 * Returns: 0, or CUPOREP_STATUS_TEXT_BUFFER.
 * Out:     text: UTF-8 without a final NUL; unchanged on failure. NULL with 0 asks for the length.
 *          text_len: bytes of the text. If text_cap is too small, the needed length, and some more a moment later:
 *          call in a loop, or with room to spare (16 KiB hold it on most machines). 0 on all other failures.
 */
int32_t cuporep_prover_metrics(const struct cuporep_prover *prover,
                               char *text,
                               size_t text_cap,
                               size_t *text_len,
                               char *err,
                               size_t err_cap);

/**
 * The version of the library, such as `0.1.0`.
 */
const char *cuporep_version(void);

/**
 * What the library was built with, separated by commas: `cpu`, and `cuda` where it has code for GPUs.
 */
const char *cuporep_features(void);

/**
 * The length of a registered proof. (Any buffer of CUPOREP_PROOF_BYTES_MAX bytes is large enough.)
 *
 * Returns: 0, CUPOREP_STATUS_PROOF_TYPE for a number that is not known.
 * Out:     proof_len: bytes of the proof.
 * In:      registered_proof: the number on chain (abi.RegisteredSealProof), such as 8 for StackedDrg32GiBV1_1.
 */
int32_t cuporep_proof_len(size_t *proof_len,
                          char *err,
                          size_t err_cap,
                          uint64_t registered_proof);

/**
 * Counts the devices that can make proofs. Without any, proofs are made on the CPU.
 *
 * Returns: 0.
 * Out:     count: how many there are.
 */
int32_t cuporep_devices(size_t *count, char *err, size_t err_cap);

/**
 * Describes a device. It is opened for a moment, to see how much of its memory is free.
 *
 * Returns: 0, CUPOREP_STATUS_DEVICE if there is none of this index.
 * Out:     device: its struct_size must be set.
 * In:      index: from 0, below the count of cuporep_devices().
 */
int32_t cuporep_device_info(struct cuporep_device *device, char *err, size_t err_cap, size_t index);

/**
 * Sends the log of this library to a function; the default is no log at all.
 *
 * There is one for the whole process. When this returns, the previous function is not called any more. It must not
 * be called from a callback.
 *
 * Returns: 0, CUPOREP_STATUS_ARGUMENT for an unknown level.
 * In:      function: receives lines, from any thread, also several at once. NULL: no log.
 *          user: its first argument.
 *          level: one of `enum cuporep_log_level`: lines of this and the lower numbers are sent.
 */
int32_t cuporep_set_log(char *err,
                        size_t err_cap,
                        cuporep_log_fn function,
                        void *user,
                        int32_t level);

/**
 * Makes a cancel token, which is not cancelled. Any number of calls may carry it.
 *
 * Returns: the token, to be freed by cuporep_cancel_token_free().
 */
struct cuporep_cancel_token *cuporep_cancel_token_new(void);

/**
 * Asks all calls that carry the token to stop; they return CUPOREP_STATUS_CANCELLED soon. It stays cancelled.
 *
 * In:      token: or NULL, which does nothing.
 */
void cuporep_cancel_token_cancel(const struct cuporep_cancel_token *token);

/**
 * Frees a token. Calls that carry it go on.
 *
 * In:      token: or NULL, which does nothing.
 */
void cuporep_cancel_token_free(struct cuporep_cancel_token *token);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CUPOREP_H */
