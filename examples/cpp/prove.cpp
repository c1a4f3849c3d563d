// Proves a sector from C++ with the process's default prover. Parameters: FIL_PROOFS_PARAMETER_CACHE.
//
//     c++ -std=c++11 prove.cpp $(pkg-config --cflags --libs --static cuporep) -o prove
//     FIL_PROOFS_PARAMETER_CACHE=PARAMS_DIR ./prove C1_FILE SECTOR MINER_ID

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuporep.h"

namespace {

// What a function of the library returned.
class Failure : public std::runtime_error {
public:
    Failure(std::int32_t status, const std::string &message) : std::runtime_error(message), status_(status) {}
    std::int32_t status() const { return status_; }

private:
    std::int32_t status_;
};

std::vector<std::uint8_t> prove(const std::string &c1, std::uint64_t sector, std::uint64_t miner) {
    std::vector<std::uint8_t> proof(CUPOREP_PROOF_BYTES_MAX);
    std::size_t length = 0;
    char message[1024];
    const std::int32_t status =
        prove_porep(proof.data(), proof.size(), &length, message, sizeof message,
                    reinterpret_cast<const std::uint8_t *>(c1.data()), c1.size(), sector, miner);
    if (status != CUPOREP_STATUS_OK) {
        throw Failure(status, message);
    }
    proof.resize(length);
    return proof;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s C1_FILE SECTOR MINER_ID\n", argv[0]);
        return 2;
    }
    try {
        std::ifstream file(argv[1], std::ios::binary);
        const std::string c1((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        for (const std::uint8_t byte : prove(c1, std::stoull(argv[2]), std::stoull(argv[3]))) {
            std::printf("%02x", byte);
        }
        std::printf("\n");
        return 0;
    } catch (const Failure &failure) {
        std::fprintf(stderr, "error %d: %s\n", static_cast<int>(failure.status()), failure.what());
        return failure.status() / 100;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
