//go:build cgo && linux && !cuporep_stub

#include "_cgo_export.h"
#include "bridge.h"

static void on_progress(void *user, const cuporep_event *event) {
    cuporepGoProgress((uintptr_t)user, (cuporep_event *)event);
}

static void on_log(void *user, int32_t level, const char *target, const char *message) {
    cuporepGoLog((uintptr_t)user, level, (char *)target, (char *)message);
}

static cuporep_request request_of(cuporep_go_call call, const uint8_t *c1, size_t c1_len, const char *request_id) {
    return (cuporep_request){
        .struct_size = sizeof(cuporep_request),
        .c1 = c1,
        .c1_len = c1_len,
        .sector_number = call.sector_number,
        .miner_actor_id = call.miner_actor_id,
        .policy = call.policy,
        .priority = call.priority,
        .request_id = request_id,
        .cancel_token = call.cancel_token,
        .has_deadline = call.has_deadline,
        .deadline_ms = call.deadline_ms,
        .progress = call.progress ? on_progress : NULL,
        .progress_user = (void *)call.progress,
        .miner_unknown = call.miner_unknown,
        .on_chain = call.on_chain,
    };
}

int32_t cuporep_go_prover_new(cuporep_prover **prover, char *err, size_t err_cap, const char *parameter_dir,
                              const char *cache_dir, const uint32_t *devices, size_t devices_len, int32_t policy,
                              uint32_t threads, uint64_t host_bytes, uint64_t device_bytes,
                              const char *device_names, uint64_t gpu_workers) {
    cuporep_config config = {
        .struct_size = sizeof(cuporep_config),
        .parameter_dir = parameter_dir,
        .cache_dir = cache_dir,
        .devices = devices,
        .devices_len = devices_len,
        .policy = policy,
        .threads = threads,
        .host_bytes = host_bytes,
        .device_bytes = device_bytes,
        .device_names = device_names,
        .gpu_workers = gpu_workers,
    };
    return cuporep_prover_new(prover, err, err_cap, &config);
}

int32_t cuporep_go_prove(const cuporep_prover *prover, uint8_t *proof, size_t proof_cap, size_t *proof_len,
                         cuporep_report *report, char *err, size_t err_cap, cuporep_go_call call, const uint8_t *c1,
                         size_t c1_len, const char *request_id, const uint32_t *devices, size_t devices_len,
                         const char *device_names) {
    cuporep_request request = request_of(call, c1, c1_len, request_id);
    request.devices = devices;
    request.devices_len = devices_len;
    request.device_names = device_names;
    report->struct_size = sizeof(cuporep_report);
    return cuporep_prover_prove(prover, proof, proof_cap, proof_len, report, err, err_cap, &request);
}

int32_t cuporep_go_check(const cuporep_prover *prover, cuporep_c1_info *info, char *err, size_t err_cap,
                         cuporep_go_call call, const uint8_t *c1, size_t c1_len, const char *request_id) {
    cuporep_request request = request_of(call, c1, c1_len, request_id);
    info->struct_size = sizeof(cuporep_c1_info);
    return cuporep_check_c1(prover, info, err, err_cap, &request);
}

int32_t cuporep_go_verify(const cuporep_prover *prover, char *err, size_t err_cap, cuporep_go_call call,
                          const uint8_t *c1, size_t c1_len, const char *request_id, const uint8_t *proof,
                          size_t proof_len) {
    cuporep_request request = request_of(call, c1, c1_len, request_id);
    return cuporep_verify(prover, err, err_cap, &request, proof, proof_len);
}

int32_t cuporep_go_preload(const cuporep_prover *prover, char *err, size_t err_cap, uint64_t sector_size,
                           cuporep_go_call call) {
    cuporep_request request = request_of(call, NULL, 0, NULL);
    return cuporep_preload(prover, err, err_cap, sector_size, &request);
}

int32_t cuporep_go_set_log(char *err, size_t err_cap, uintptr_t handle, int32_t level) {
    return cuporep_set_log(err, err_cap, handle ? on_log : NULL, (void *)handle, level);
}
