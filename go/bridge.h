/* What the Go package needs between itself and cuporep.h: structs with pointers to Go memory are made here, on the C
 * stack, so that Go passes such pointers as arguments only. */
#ifndef CUPOREP_GO_BRIDGE_H
#define CUPOREP_GO_BRIDGE_H

#include "cuporep.h"

/* The members of a request that are not pointers to Go memory. */
typedef struct cuporep_go_call {
    uint64_t sector_number;
    uint64_t miner_actor_id;
    uint64_t deadline_ms;
    uintptr_t progress; /* a handle of Go, or 0 */
    const cuporep_cancel_token *cancel_token;
    int32_t policy;
    int32_t priority;
    int32_t has_deadline;
    int32_t miner_unknown;
    int32_t on_chain;
} cuporep_go_call;

int32_t cuporep_go_prover_new(cuporep_prover **prover, char *err, size_t err_cap, const char *parameter_dir,
                              const char *cache_dir, const uint32_t *devices, size_t devices_len, int32_t policy,
                              uint32_t threads, uint64_t host_bytes, uint64_t device_bytes,
                              const char *device_names, uint64_t gpu_workers);

int32_t cuporep_go_prove(const cuporep_prover *prover, uint8_t *proof, size_t proof_cap, size_t *proof_len,
                         cuporep_report *report, char *err, size_t err_cap, cuporep_go_call call, const uint8_t *c1,
                         size_t c1_len, const char *request_id, const uint32_t *devices, size_t devices_len,
                         const char *device_names);

int32_t cuporep_go_check(const cuporep_prover *prover, cuporep_c1_info *info, char *err, size_t err_cap,
                         cuporep_go_call call, const uint8_t *c1, size_t c1_len, const char *request_id);

int32_t cuporep_go_verify(const cuporep_prover *prover, char *err, size_t err_cap, cuporep_go_call call,
                          const uint8_t *c1, size_t c1_len, const char *request_id, const uint8_t *proof,
                          size_t proof_len);

int32_t cuporep_go_preload(const cuporep_prover *prover, char *err, size_t err_cap, uint64_t sector_size,
                           cuporep_go_call call);

int32_t cuporep_go_set_log(char *err, size_t err_cap, uintptr_t handle, int32_t level);

#endif
