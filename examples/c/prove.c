/*
 * Proves a sector from C, with progress on standard error. An interrupt cancels the proof.
 *
 *     cc -std=c99 prove.c $(pkg-config --cflags --libs --static cuporep) -o prove
 *     ./prove C1_FILE SECTOR MINER_ID PARAMS_DIR
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuporep.h"

static cuporep_cancel_token *token;

static void on_interrupt(int signal) {
    (void)signal;
    cuporep_cancel_token_cancel(token); /* sets a flag, nothing else */
}

static void on_progress(void *user, const cuporep_event *event) {
    (void)user;
    if (event->ended) {
        fprintf(stderr, "%s: stage %2" PRId32 ", partition %2" PRId32 ": %8.1f ms\n", event->request_id, event->stage,
                event->partition, (double)event->elapsed_ns / 1e6);
    }
}

static unsigned char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    unsigned char *bytes = NULL;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0) {
        bytes = malloc((size_t)size);
        if (bytes != NULL && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    *length = bytes == NULL ? 0 : (size_t)size;
    return bytes;
}

int main(int argc, char **argv) {
    static unsigned char proof[CUPOREP_PROOF_BYTES_MAX];
    char message[1024];
    size_t proof_len = 0, i;
    cuporep_prover *prover = NULL;
    cuporep_config config = {0};
    cuporep_request request = {0};
    cuporep_report report = {0};
    unsigned char *c1;
    int32_t status;

    if (argc != 5) {
        fprintf(stderr, "usage: %s C1_FILE SECTOR MINER_ID PARAMS_DIR\n", argv[0]);
        return 2;
    }
    c1 = read_file(argv[1], &request.c1_len);
    if (c1 == NULL) {
        fprintf(stderr, "cannot read %s\n", argv[1]);
        return 2;
    }
    token = cuporep_cancel_token_new();
    signal(SIGINT, on_interrupt);

    config.struct_size = sizeof config;
    config.parameter_dir = argv[4];
    request.struct_size = sizeof request;
    request.c1 = c1;
    request.sector_number = strtoull(argv[2], NULL, 10);
    request.miner_actor_id = strtoull(argv[3], NULL, 10);
    request.request_id = "example";
    request.cancel_token = token;
    request.progress = on_progress;
    report.struct_size = sizeof report;

    status = cuporep_prover_new(&prover, message, sizeof message, &config);
    if (status == 0) {
        status = cuporep_prover_prove(prover, proof, sizeof proof, &proof_len, &report, message, sizeof message, &request);
    }
    if (status == 0) {
        /* The library has verified it already; this shows how. */
        status = cuporep_verify(prover, message, sizeof message, &request, proof, proof_len);
    }
    if (status == 0) {
        for (i = 0; i < proof_len; i++) {
            printf("%02x", proof[i]);
        }
        printf("\n");
        fprintf(stderr, "made on %s in %.1f s\n", report.device, (double)report.total_ns / 1e9);
    } else {
        fprintf(stderr, "error %" PRId32 ": %s\n", status, message);
    }
    cuporep_prover_free(prover);
    cuporep_cancel_token_free(token);
    free(c1);
    return status / 100; /* the class: 1 for wrong input, 2 for parameters, ... */
}
