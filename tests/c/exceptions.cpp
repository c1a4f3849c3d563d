// C++ exceptions that leave a callback end there: the call goes on, the callback is not called again.
//
//     exceptions C1_FILE SECTOR MINER_ID

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "cuporep.h"

namespace {

int progressed = 0, logged = 0, destroyed = 0;

struct Local {
    ~Local() { destroyed++; }
};

struct Unusual {
    ~Unusual() { destroyed++; }
};

void throw_standard(void *, const cuporep_event *) {
    Local local;
    progressed++;
    throw std::runtime_error(std::string(1000, 'x'));
}

void throw_number(void *, const cuporep_event *) {
    progressed++;
    throw 5;
}

void throw_unusual(void *, const cuporep_event *) {
    progressed++;
    throw Unusual();
}

void throw_log(void *, std::int32_t, const char *, const char *) {
    logged++;
    throw std::runtime_error("log");
}

void expect(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "not so: %s (progressed %d, logged %d, destroyed %d)\n", what, progressed, logged, destroyed);
        std::exit(1);
    }
}

}  // namespace

int main(int argc, char **argv) {
    expect(argc == 4, "three arguments");
    std::ifstream file(argv[1], std::ios::binary);
    const std::string c1((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    char message[1024];
    cuporep_prover *prover = nullptr;
    cuporep_config config = cuporep_config();
    config.struct_size = sizeof config;
    config.parameter_dir = "/nonexistent/parameters";
    expect(cuporep_prover_new(&prover, message, sizeof message, &config) == 0, message);
    cuporep_request request = cuporep_request();
    request.struct_size = sizeof request;
    request.c1 = reinterpret_cast<const std::uint8_t *>(c1.data());
    request.c1_len = c1.size();
    request.sector_number = std::stoull(argv[2]);
    request.miner_actor_id = std::stoull(argv[3]);
    expect(cuporep_set_log(message, sizeof message, throw_log, nullptr, CUPOREP_LOG_LEVEL_DEBUG) == 0, message);

    cuporep_progress_fn const throwing[] = {throw_standard, throw_number, throw_unusual};
    for (int round = 0; round < 3; round++) {
        for (int kind = 0; kind < 3; kind++) {
            request.progress = throwing[kind];
            progressed = 0;
            destroyed = 0;
            cuporep_report report = cuporep_report();
            report.struct_size = sizeof report;
            std::uint8_t proof[192];
            std::size_t length = 0;
            const std::int32_t status = cuporep_prover_prove(prover, proof, sizeof proof, &length, &report, message,
                                                             sizeof message, &request);
            expect(status == CUPOREP_STATUS_PARAMS_MISSING, message);
            expect(progressed == 1 && report.progress_failed == 1, "called once, and the report says that it failed");
            expect(destroyed == (kind == 1 ? 0 : 1), "objects on the way are destroyed");
        }
    }
    expect(logged == 1, "the log sink threw once and is not called again");
    // Exceptions of the program's own still work.
    bool caught = false;
    try {
        throw std::runtime_error("own");
    } catch (const std::exception &) {
        caught = true;
    }
    expect(caught, "own exceptions are caught");
    cuporep_prover_free(prover);
    return 0;
}
