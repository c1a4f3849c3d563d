/*
 * The C ABI as a C program sees it, without parameters: arguments, buffers, structs, threads, small stacks, fork.
 * Prints nothing unless something is wrong, so that a byte of the library on standard output or error is noticed.
 *
 *     abi C1_FILE SECTOR MINER_ID
 */

#define _POSIX_C_SOURCE 200809L

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuporep.h"

#define EXPECT(condition)                                                             \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s; message: %s\n", __FILE__, __LINE__, #condition, message); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static unsigned char *c1;
static size_t c1_len;
static uint64_t sector, miner;
static char message[1024];

static cuporep_request whole(void) {
    cuporep_request request = {0};
    request.struct_size = sizeof request;
    request.c1 = c1;
    request.c1_len = c1_len;
    request.sector_number = sector;
    request.miner_actor_id = miner;
    return request;
}

static void fork_before_first_use(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        cuporep_prover *prover = NULL;
        cuporep_request request = whole();
        alarm(120);
        _exit(cuporep_prover_default(&prover, NULL, 0) == 0 && cuporep_check_c1(prover, NULL, NULL, 0, &request) == 0 ? 7 : 8);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* A child that is forked later: handles of the parent are refused, the default prover is made anew. */
static void fork_after_use(cuporep_prover *parents) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        cuporep_prover *prover = NULL;
        cuporep_request request = whole();
        alarm(120);
        if (cuporep_check_c1(parents, NULL, NULL, 0, &request) != CUPOREP_STATUS_ARGUMENT) {
            _exit(8);
        }
        cuporep_prover_free(parents);
        _exit(cuporep_prover_default(&prover, NULL, 0) == 0 && cuporep_check_c1(prover, NULL, NULL, 0, &request) == 0 ? 7 : 9);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void null_pointers(cuporep_prover *prover) {
    unsigned char proof[192];
    size_t len = 77;
    cuporep_request request = whole();
    EXPECT(prove_porep(proof, 192, NULL, message, sizeof message, c1, c1_len, sector, miner) == 100);
    EXPECT(strstr(message, "proof_len") != NULL);
    EXPECT(prove_porep(NULL, 192, &len, message, sizeof message, c1, c1_len, sector, miner) == 100 && len == 0);
    EXPECT(prove_porep(proof, 192, &len, NULL, 1, c1, c1_len, sector, miner) == 100);
    EXPECT(prove_porep(proof, 192, &len, message, sizeof message, NULL, 1, sector, miner) == 100);
    EXPECT(prove_porep(proof, 192, &len, message, sizeof message, NULL, 0, sector, miner) / 100 == 1);
    EXPECT(cuporep_prover_new(NULL, message, sizeof message, NULL) == 100);
    EXPECT(cuporep_prover_default(NULL, message, sizeof message) == 100);
    EXPECT(cuporep_prover_prove(NULL, proof, 192, &len, NULL, message, sizeof message, &request) == 100);
    EXPECT(cuporep_prover_prove(prover, proof, 192, &len, NULL, message, sizeof message, NULL) == 100);
    EXPECT(cuporep_prover_prove(prover, proof, 192, NULL, NULL, message, sizeof message, &request) == 100);
    EXPECT(cuporep_check_c1(NULL, NULL, message, sizeof message, &request) == 100);
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, NULL) == 100);
    EXPECT(cuporep_verify(prover, message, sizeof message, NULL, proof, 192) == 100);
    EXPECT(cuporep_verify(prover, message, sizeof message, &request, NULL, 192) == 100);
    EXPECT(cuporep_preload(NULL, message, sizeof message, 2048, NULL) == 100);
    EXPECT(cuporep_preload(prover, message, sizeof message, 2047, NULL) == 100);
    EXPECT(cuporep_evict(NULL, message, sizeof message, 2048) == 100);
    EXPECT(cuporep_evict(prover, message, sizeof message, 0) == 100);
    EXPECT(cuporep_release(NULL, message, sizeof message) == 100);
    len = 77;
    EXPECT(cuporep_prover_metrics(NULL, (char *)proof, 192, &len, message, sizeof message) == 100 && len == 0);
    EXPECT(cuporep_prover_metrics(prover, (char *)proof, 192, NULL, message, sizeof message) == 100);
    EXPECT(cuporep_prover_metrics(prover, NULL, 1, &len, message, sizeof message) == 100);
    EXPECT(cuporep_proof_len(NULL, message, sizeof message, 8) == 100);
    EXPECT(cuporep_devices(NULL, message, sizeof message) == 100);
    EXPECT(cuporep_device_info(NULL, message, sizeof message, 0) == 100);
    cuporep_prover_free(NULL);
    cuporep_cancel_token_free(NULL);
    cuporep_cancel_token_cancel(NULL);
}

static void buffers(cuporep_prover *prover) {
    unsigned char proof[192];
    size_t len, cap, i;
    memset(proof, 0xee, sizeof proof);
    for (cap = 0; cap < 192; cap += 191) {
        len = 77;
        EXPECT(prove_porep(cap ? proof : NULL, cap, &len, message, sizeof message, c1, c1_len, sector, miner) ==
               CUPOREP_STATUS_PROOF_BUFFER);
        EXPECT(len == 192 && strstr(message, "192") != NULL);
    }
    for (i = 0; i < sizeof proof; i++) {
        EXPECT(proof[i] == 0xee);
    }
    /* Messages are cut, NUL-ended and never longer than the buffer. */
    for (cap = 0; cap < 40; cap++) {
        char cut[41];
        memset(cut, 'x', sizeof cut);
        EXPECT(cuporep_evict(prover, cut, cap, 1) == 100);
        EXPECT(cut[cap] == 'x' && (cap == 0 || cut[cap - 1] == 0));
    }
    EXPECT(cuporep_evict(prover, message, sizeof message, 2048) == 0 && message[0] == 0);
    for (i = 0; i < 20; i++) {
        EXPECT(cuporep_proof_len(&len, message, sizeof message, i) == 0);
        EXPECT(len >= 192 && len % 192 == 0 && len <= CUPOREP_PROOF_BYTES_MAX);
    }
    EXPECT(cuporep_proof_len(&len, message, sizeof message, 8) == 0 && len == 1920);
    EXPECT(cuporep_proof_len(&len, message, sizeof message, 20) == CUPOREP_STATUS_PROOF_TYPE);
    EXPECT(cuporep_proof_len(&len, message, sizeof message, UINT64_MAX) == CUPOREP_STATUS_PROOF_TYPE);
}

static void struct_sizes(cuporep_prover *prover) {
    const size_t wrong[] = {0, 1, sizeof(size_t), sizeof(cuporep_request) - 1, sizeof(cuporep_request) + 8, SIZE_MAX};
    size_t i, len;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cuporep_request request = whole();
        cuporep_config config = {0};
        cuporep_report report = {0};
        cuporep_c1_info info = {0};
        cuporep_prover *made = (cuporep_prover *)&i;
        cuporep_request good = whole();
        unsigned char proof[192];
        request.struct_size = config.struct_size = report.struct_size = info.struct_size = wrong[i];
        EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
        EXPECT(strstr(message, "struct_size") != NULL);
        EXPECT(cuporep_check_c1(prover, &info, message, sizeof message, &good) == 100);
        EXPECT(cuporep_prover_prove(prover, proof, 192, &len, &report, message, sizeof message, &good) == 100);
        EXPECT(cuporep_prover_new(&made, message, sizeof message, &config) == 100 && made == NULL);
    }
}

static void bad_members(cuporep_prover *prover) {
    cuporep_request request = whole();
    const uint32_t device = 0;
    size_t count = 7, len;
    unsigned char proof[192];
    cuporep_device info = {0};
    info.struct_size = sizeof info;
    request.policy = 4;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
    request.policy = -1;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
    request = whole();
    request.has_deadline = 2;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
    request = whole();
    request.devices_len = 1;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
    request = whole();
    request.device_names = "cuda";
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
    request.device_names = "cuda:0";
    request.devices = &device;
    request.devices_len = 1;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 100);
    request = whole();
    request.devices_len = 1;
    EXPECT(cuporep_devices(&count, message, sizeof message) == 0);
    EXPECT(cuporep_device_info(&info, message, sizeof message, count) == CUPOREP_STATUS_DEVICE);
    if (count == 0) {
        request.devices = &device;
        EXPECT(cuporep_prover_prove(prover, proof, 192, &len, NULL, message, sizeof message, &request) == CUPOREP_STATUS_DEVICE);
        request = whole();
        request.device_names = "cuda:0, GPU-1234";
        EXPECT(cuporep_prover_prove(prover, proof, 192, &len, NULL, message, sizeof message, &request) == CUPOREP_STATUS_DEVICE);
        request = whole();
        request.policy = CUPOREP_POLICY_GPU_ONLY;
        EXPECT(cuporep_prover_prove(prover, proof, 192, &len, NULL, message, sizeof message, &request) == CUPOREP_STATUS_DEVICE);
    }
}

static void checks(cuporep_prover *prover) {
    cuporep_request request = whole();
    cuporep_c1_info info = {0};
    cuporep_report report = {0};
    unsigned char proof[192];
    size_t len;
    info.struct_size = sizeof info;
    report.struct_size = sizeof report;
    EXPECT(cuporep_check_c1(prover, &info, message, sizeof message, &request) == 0 && message[0] == 0);
    EXPECT(info.sector_size == 2048 && info.partitions == 1 && info.proof_len == 192 && info.registered_proof == 5);
    request.miner_actor_id++;
    EXPECT(cuporep_check_c1(prover, &info, message, sizeof message, &request) == CUPOREP_STATUS_C1_IDENTITY);
    EXPECT(info.sector_size == 0 && info.struct_size == sizeof info);
    request = whole();
    request.c1_len /= 2;
    EXPECT(cuporep_check_c1(prover, &info, message, sizeof message, &request) == CUPOREP_STATUS_C1_SYNTAX);
    request = whole();
    EXPECT(cuporep_prover_prove(prover, proof, 192, &len, &report, message, sizeof message, &request) == CUPOREP_STATUS_PARAMS_MISSING);
    EXPECT(strstr(message, "/nonexistent/parameters") != NULL && strstr(message, "FIL_PROOFS_PARAMETER_CACHE") != NULL);
    EXPECT(len == 0 && report.stage_ns[CUPOREP_STAGE_CHECK] > 0 && report.partitions == 0);
    EXPECT(cuporep_verify(prover, message, sizeof message, &request, proof, 192) == CUPOREP_STATUS_PARAMS_MISSING);
    EXPECT(cuporep_preload(prover, message, sizeof message, 2048, NULL) == CUPOREP_STATUS_PARAMS_MISSING);
    EXPECT(cuporep_release(prover, message, sizeof message) == 0);
}

/* The text says what was counted; a buffer that is too small stays as it is and learns the length. */
static void metrics(cuporep_prover *prover) {
    const size_t spare = 256; /* numbers may have more digits a moment later */
    char *text;
    size_t len = 77, needed, i;
    EXPECT(cuporep_prover_metrics(prover, NULL, 0, &len, message, sizeof message) == CUPOREP_STATUS_TEXT_BUFFER);
    EXPECT(len > 77 && message[0] != 0);
    needed = len;
    text = malloc(needed + spare);
    EXPECT(text != NULL);
    memset(text, 'x', needed + spare);
    EXPECT(cuporep_prover_metrics(prover, text, needed / 2, &len, message, sizeof message) == CUPOREP_STATUS_TEXT_BUFFER);
    EXPECT(len > needed / 2);
    for (i = 0; i < needed + spare; i++) {
        EXPECT(text[i] == 'x');
    }
    EXPECT(cuporep_prover_metrics(prover, text, needed + spare, &len, message, sizeof message) == 0 && message[0] == 0);
    EXPECT(len < needed + spare && text[len - 1] == '\n' && text[len] == 'x');
    text[len] = 0;
    EXPECT(strstr(text, "\n# TYPE cuporep_proofs_total counter\n") != NULL);
    EXPECT(strstr(text, "result=\"parameters\"") != NULL && strstr(text, "result=\"ok\"") == NULL);
    EXPECT(strstr(text, "cuporep_build_info{") != NULL && strstr(text, CUPOREP_VERSION) != NULL);
    free(text);
}

static void stops(cuporep_prover *prover) {
    cuporep_request request = whole();
    cuporep_cancel_token *token = cuporep_cancel_token_new();
    request.cancel_token = token;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 0);
    cuporep_cancel_token_cancel(token);
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == CUPOREP_STATUS_CANCELLED);
    EXPECT(cuporep_preload(prover, message, sizeof message, 2048, &request) == CUPOREP_STATUS_CANCELLED);
    cuporep_cancel_token_free(token);
    request = whole();
    request.has_deadline = 1;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == CUPOREP_STATUS_DEADLINE);
    request.deadline_ms = UINT64_MAX;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 0);
    request.has_deadline = 0;
    request.deadline_ms = 0;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 0);
}

struct seen {
    int begun, ended;
    char last_log[256];
};

static void on_progress(void *user, const cuporep_event *event) {
    struct seen *seen = user;
    if (event->struct_size < sizeof *event || strcmp(event->request_id, "h\xc3\xa9") != 0) {
        return;
    }
    *(event->ended ? &seen->ended : &seen->begun) += 1;
}

static void on_log(void *user, int32_t level, const char *target, const char *text) {
    struct seen *seen = user;
    if (level <= CUPOREP_LOG_LEVEL_INFO && strncmp(target, "cuporep", 7) == 0) {
        snprintf(seen->last_log, sizeof seen->last_log, "%s", text);
    }
}

static void callbacks(cuporep_prover *prover) {
    struct seen seen = {0};
    unsigned char proof[192];
    size_t len;
    cuporep_request request = whole();
    request.request_id = "h\xc3\xa9";
    request.progress = on_progress;
    request.progress_user = &seen;
    EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 0);
    EXPECT(seen.begun == 2 && seen.ended == 2);
    EXPECT(cuporep_set_log(message, sizeof message, on_log, &seen, 6) == 100);
    EXPECT(cuporep_set_log(message, sizeof message, on_log, &seen, CUPOREP_LOG_LEVEL_INFO) == 0);
    EXPECT(cuporep_prover_prove(prover, proof, 192, &len, NULL, message, sizeof message, &request) == CUPOREP_STATUS_PARAMS_MISSING);
    EXPECT(strstr(seen.last_log, "proof id=\"h\xc3\xa9\" sector=") == seen.last_log && strstr(seen.last_log, " miner=") != NULL);
    EXPECT(strstr(seen.last_log, " failed class=parameters code=200 ms=") != NULL);
    EXPECT(cuporep_set_log(message, sizeof message, NULL, NULL, CUPOREP_LOG_LEVEL_TRACE) == 0);
    seen.last_log[0] = 0;
    EXPECT(cuporep_prover_prove(prover, proof, 192, &len, NULL, message, sizeof message, &request) == CUPOREP_STATUS_PARAMS_MISSING);
    EXPECT(seen.last_log[0] == 0);
}

static void *one_call(void *prover) {
    cuporep_request request = whole();
    char own[256];
    unsigned char proof[192];
    size_t len;
    int32_t status = cuporep_check_c1(prover, NULL, own, sizeof own, &request);
    if (status == 0) {
        status = cuporep_prover_prove(prover, proof, 192, &len, NULL, own, sizeof own, &request);
    }
    if (status == CUPOREP_STATUS_PARAMS_MISSING) {
        status = prove_porep(proof, 1, &len, own, sizeof own, c1, c1_len, sector, miner);
    }
    return status == CUPOREP_STATUS_PROOF_BUFFER ? NULL : prover;
}

static void sixteen_small_stacks(cuporep_prover *prover) {
    pthread_t threads[16];
    pthread_attr_t attributes;
    size_t i;
    EXPECT(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
    for (i = 0; i < 16; i++) {
        EXPECT(pthread_create(&threads[i], &attributes, one_call, prover) == 0);
    }
    for (i = 0; i < 16; i++) {
        void *failed = prover;
        EXPECT(pthread_join(threads[i], &failed) == 0 && failed == NULL);
    }
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv) {
    cuporep_prover *prover = NULL, *standard = NULL;
    cuporep_config config = {0};
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    EXPECT(file != NULL);
    c1 = malloc(1 << 20);
    EXPECT(c1 != NULL);
    c1_len = fread(c1, 1, 1 << 20, file);
    fclose(file);
    sector = strtoull(argv[2], NULL, 10);
    miner = strtoull(argv[3], NULL, 10);

    fork_before_first_use();
    EXPECT(strcmp(cuporep_version(), CUPOREP_VERSION) == 0);
    EXPECT(strncmp(cuporep_features(), "cpu", 3) == 0);
    config.struct_size = sizeof config;
    config.parameter_dir = "/nonexistent/parameters";
    config.threads = 2;
    EXPECT(cuporep_prover_new(&prover, message, sizeof message, &config) == 0 && prover != NULL);
    null_pointers(prover);
    buffers(prover);
    struct_sizes(prover);
    bad_members(prover);
    checks(prover);
    metrics(prover);
    stops(prover);
    callbacks(prover);
    sixteen_small_stacks(prover);
    EXPECT(cuporep_prover_default(&standard, message, sizeof message) == 0);
    fork_after_use(prover);
    fork_after_use(standard);
    cuporep_prover_free(standard);
    cuporep_prover_free(prover);
    free(c1);
    return 0;
}
