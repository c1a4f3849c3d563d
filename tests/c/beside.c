/*
 * The library beside another Rust archive: both compute, both catch panics, before and after each other.
 *
 *     beside C1_FILE SECTOR MINER_ID
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuporep.h"

int32_t neighbour_works(void);
void neighbour_progress(void *user, const cuporep_event *event);

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s; message: %s\n", __FILE__, __LINE__, #condition, message);  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv) {
    static unsigned char c1[1 << 20];
    char message[1024] = "";
    cuporep_prover *prover = NULL;
    cuporep_request request = {0};
    cuporep_config config = {0};
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    int round;

    EXPECT(file != NULL);
    request.struct_size = sizeof request;
    request.c1 = c1;
    request.c1_len = fread(c1, 1, sizeof c1, file);
    fclose(file);
    request.sector_number = strtoull(argv[2], NULL, 10);
    request.miner_actor_id = strtoull(argv[3], NULL, 10);
    request.progress = neighbour_progress;
    config.struct_size = sizeof config;
    config.parameter_dir = "/nonexistent/parameters";
    EXPECT(cuporep_prover_new(&prover, message, sizeof message, &config) == 0);
    for (round = 0; round < 3; round++) {
        cuporep_report report = {0};
        unsigned char proof[192];
        size_t len;
        report.struct_size = sizeof report;
        EXPECT(neighbour_works() == 0);
        EXPECT(cuporep_check_c1(prover, NULL, message, sizeof message, &request) == 0);
        EXPECT(cuporep_prover_prove(prover, proof, sizeof proof, &len, &report, message, sizeof message, &request) ==
               CUPOREP_STATUS_PARAMS_MISSING);
        EXPECT(report.progress_failed == 1);
        EXPECT(neighbour_works() == 0);
    }
    cuporep_prover_free(prover);
    return 0;
}
