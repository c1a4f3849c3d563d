// Rows times a packed witness, and what the sums over the queries take from witnesses.
//
// A system is a list of tiles: consecutive rows that a block of rows has itself, over the variables of one of the
// block's occurrences. Of a witness nearly all is bits. So all short rows are first evaluated as though they were over
// bits only, a thread each, by a look-up among all sums of their coefficients; then the rows that have other variables
// or many entries, which are known beforehand, are evaluated with care and written over the former.
#include "field.cuh"
#include "simt.cuh"

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t ALL = ~0u;

// The most rows of a tile, and how many of them a thread has.
constexpr uint32_t LOG_TILE = 10;
constexpr uint32_t ROWS = (1u << LOG_TILE) / THREADS;

// The most entries of a row that has a table of sums.
constexpr int SHORT = 3;

// Entries of a long row that a lane has in work at a time.
constexpr int BATCH = 4;

// Witnesses whose bits are looked at together.
constexpr uint32_t MAX_WITNESSES = 10;

// Marks the number of an input or, in the rows of a block, of a slot. The first of either is the constant ONE.
constexpr uint32_t INPUT = 1u << 31;
constexpr uint32_t ONE = INPUT;

// No variable.
constexpr uint32_t NONE = ~0u;

// Marks the number of a row without a table of sums.
constexpr uint32_t LONG = 1u << 31;

// A tile ends where the next one begins.
struct alignas(16) Tile {
    uint32_t base;   // the auxiliary variable that is the block's first
    uint32_t slots;  // where the variables that slots stand for begin
    uint32_t record; // the first row's record
    uint32_t row;    // the first row's place in the system
};

// A row of a block. A short one has a table of sums and variables; a long one has LONG and a number in place of the
// table, and no variables.
struct alignas(16) Record {
    uint32_t sums;
    uint32_t entries[SHORT];
};

// Where a long row's variables and the numbers of their coefficients begin.
struct alignas(16) LongRow {
    uint32_t variables;
    uint32_t ids;
    uint32_t len;
    uint32_t unused;
};

// What all evaluations of a system share.
struct System {
    const Tile *tiles;
    const uint32_t *slots;
    const uint64_t *full;  // a bit for each auxiliary variable: whether it is full-width
    const uint32_t *ranks; // how many ones are before each word of `full`
};

struct Witness {
    const uint32_t *bits; // of all auxiliary variables
    const Fr *full;       // values of the full-width ones
    const Fr *inputs;
};

struct BitWitnesses {
    const uint32_t *bits[MAX_WITNESSES];
    uint64_t count;
};

struct alignas(16) Number {
    uint32_t v[Fr::LIMBS];
};

// The system's variable that a number in a block stands for.
DEVICE uint32_t place(const uint32_t *slots, const Tile &tile, uint32_t number) {
    // One comparison excludes ONE and NONE, so that the load needs no branches.
    uint32_t result = number & INPUT ? number : tile.base + number;
    if (number - (ONE + 1) < NONE - (ONE + 1))
        result = slots[tile.slots + (number & ~INPUT)];
    return result;
}

// The value of a variable if that is a bit; of none and of the inputs after the first, zero.
DEVICE uint32_t bit(const uint32_t *bits, uint32_t variable) {
    return variable & INPUT ? variable == ONE : bits[variable / 32] >> variable % 32 & 1;
}

// The word of `full` where an auxiliary variable is; zero for others.
DEVICE uint64_t full_word(const System &system, uint32_t variable) {
    return variable & INPUT ? 0 : system.full[variable / 64];
}

// Whether a variable is no bit.
DEVICE bool is_full(uint64_t full_word, uint32_t variable) {
    return variable & INPUT ? variable != ONE && variable != NONE : full_word >> variable % 64 & 1;
}

// The value of such a variable.
DEVICE Fr full_value(const System &system, const Witness &witness, uint64_t full_word, uint32_t variable) {
    if (variable & INPUT)
        return witness.inputs[variable & ~INPUT];
    uint64_t before = full_word & (((uint64_t)1 << variable % 64) - 1);
    return witness.full[system.ranks[variable / 64] + __popcll(before)];
}

// Stores a row of each lane that has one. Lanes 2 k and 2 k + 1 have the rows k and 16 + k of 32. They exchange halves,
// so that each instruction stores 512 bytes without gaps; nothing of what is stored is read soon.
DEVICE void store(Fr *out, uint32_t lane, const Fr &value, bool stored) {
    const uint32_t *v = value.v;
    bool odd = lane & 1;
    uint32_t kept[4], received[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        kept[i] = odd ? v[4 + i] : v[i];
        received[i] = __shfl_xor_sync(ALL, odd ? v[i] : v[4 + i], 1);
    }
    uint4 own = make_uint4(kept[0], kept[1], kept[2], kept[3]);
    uint4 other = make_uint4(received[0], received[1], received[2], received[3]);
    uint32_t lanes = __ballot_sync(ALL, stored);
    uint4 *halves = reinterpret_cast<uint4 *>(out) + lane;
    if (lanes >> (lane & ~1u) & 1)
        __stcs(halves, odd ? other : own);
    if (lanes >> (lane | 1u) & 1)
        __stcs(halves + 32, odd ? own : other);
}

// The sum over all lanes, in lane 0.
DEVICE Fr sum_of_lanes(Fr sum) {
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) {
        Fr other;
#pragma unroll
        for (int i = 0; i < Fr::LIMBS; i++)
            other.v[i] = __shfl_down_sync(ALL, sum.v[i], step);
        sum = sum + other;
    }
    return sum;
}

} // namespace

// Every short row, as though all of its variables were bits. One block of threads for each tile.
KERNEL(256, 4, r1cs_rows, (System system, const Record *records, const Fr *sums, const uint32_t *bits, Fr *out)) {
    const Tile tile = system.tiles[blockIdx.x];
    const uint32_t rows = system.tiles[blockIdx.x + 1].row - tile.row;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x - lane;
    const uint32_t first = warp + lane / 2 + lane % 2 * 16;
    // One step for all rows before the next one, so that their loads wait together.
    Record record[ROWS];
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t row = first + i * THREADS;
        record[i] = row < rows ? records[tile.record + row] : Record{LONG, {NONE, NONE, NONE}};
    }
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++)
#pragma unroll
        for (uint32_t &entry : record[i].entries)
            entry = place(system.slots, tile, entry);
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++)
#pragma unroll
        for (uint32_t &entry : record[i].entries)
            entry = bit(bits, entry);
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++) {
        if (warp + i * THREADS >= rows)
            break;
        const Record &r = record[i];
        bool is_short = !(r.sums & LONG);
        Fr value = is_short ? sums[r.sums + r.entries[0] + 2 * r.entries[1] + 4 * r.entries[2]] : Fr::zero();
        store(out + tile.row + warp + i * THREADS, lane, value, is_short);
    }
}

// The short rows that have variables other than bits, a thread each. An element of `list` is a tile and a row in it.
KERNEL(256, 3, r1cs_mixed_rows,
       (System system, Witness witness, const Record *records, const Fr *sums, const uint32_t *list, uint32_t count,
        Fr *out)) {
    uint32_t index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= count)
        return;
    const Tile tile = system.tiles[list[index] >> LOG_TILE];
    const uint32_t row = list[index] & ((1u << LOG_TILE) - 1);
    const Record record = records[tile.record + row];
    uint32_t ones = 0;
    Fr sum = Fr::zero();
#pragma unroll
    for (int entry = 0; entry < SHORT; entry++) {
        uint32_t variable = place(system.slots, tile, record.entries[entry]);
        uint64_t word = full_word(system, variable);
        // The sum with a single one is that entry's coefficient.
        if (is_full(word, variable)) {
            Fr coefficient = sums[record.sums + (1u << entry)];
            sum = sum + full_value(system, witness, word, variable) * coefficient;
        } else {
            ones |= bit(witness.bits, variable) << entry;
        }
    }
    Fr of_bits = sums[record.sums + ones];
    out[tile.row + row] = sum + of_bits;
}

// The long rows, a warp each, with whatever variables they have.
KERNEL(256, 3, r1cs_long_rows,
       (System system, Witness witness, const Record *records, const LongRow *rows, const uint32_t *variables,
        const uint32_t *ids, const Fr *coefficients, const uint32_t *list, uint32_t count, Fr *out)) {
    const uint32_t lane = threadIdx.x % 32, index = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (index >= count)
        return;
    const Tile tile = system.tiles[list[index] >> LOG_TILE];
    const uint32_t row = list[index] & ((1u << LOG_TILE) - 1);
    const LongRow own = rows[records[tile.record + row].sums & ~LONG];
    variables += own.variables;
    ids += own.ids;
    Fr sum = Fr::zero();
    for (uint32_t begin = lane; begin - lane < own.len; begin += 32 * BATCH) {
        // One step for all entries before the next one, so that their loads wait together.
        uint32_t variable[BATCH], id[BATCH], value[BATCH];
        uint64_t word[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            bool inside = begin + 32 * i < own.len;
            variable[i] = inside ? variables[begin + 32 * i] : NONE;
            id[i] = inside ? ids[begin + 32 * i] : 0;
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            variable[i] = place(system.slots, tile, variable[i]);
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            word[i] = full_word(system, variable[i]);
            value[i] = bit(witness.bits, variable[i]);
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            bool full = is_full(word[i], variable[i]);
            if (!full && value[i] == 0)
                continue;
            Fr term = coefficients[id[i]];
            if (full)
                term = term * full_value(system, witness, word[i], variable[i]);
            sum = sum + term;
        }
    }
    sum = sum_of_lanes(sum);
    if (lane == 0)
        out[tile.row + row] = sum;
}

// For each auxiliary variable of a query, in the order of their bases, the bits of all witnesses as one number; zero
// for full-width variables. Without a density all of the `aux` variables are of the query.
KERNEL(256, 4, r1cs_keys,
       (BitWitnesses witnesses, const uint32_t *full, const uint32_t *density, const uint32_t *ranks, uint32_t aux,
        uint32_t *keys)) {
    const uint32_t lane = threadIdx.x % 32, below = (1u << lane) - 1;
    // A lane has the bits of 32 variables.
    const uint32_t index = blockIdx.x * THREADS + threadIdx.x;
    const bool inside = 32 * index < aux;
    uint32_t occurring = 0, place = 32 * index;
    if (inside && density) {
        // Ranks are of 64 variables.
        occurring = density[index];
        place = ranks[index / 2] + (index % 2 ? __popc(density[index - 1]) : 0);
    } else if (inside) {
        occurring = aux - place < 32 ? (1u << (aux - place)) - 1 : ALL;
    }
    const uint32_t bits = inside ? ~full[index] : 0;
    uint32_t own[MAX_WITNESSES];
#pragma unroll
    for (uint32_t j = 0; j < MAX_WITNESSES; j++)
        own[j] = inside && j < witnesses.count ? witnesses.bits[j][index] & bits : 0;

    // The words of all lanes in turn, a lane for each variable.
#pragma unroll 1
    for (int word = 0; word < 32; word++) {
        uint32_t variables = __shfl_sync(ALL, occurring, word), first = __shfl_sync(ALL, place, word), key = 0;
#pragma unroll
        for (uint32_t j = 0; j < MAX_WITNESSES; j++)
            if (j < witnesses.count)
                key |= (__shfl_sync(ALL, own[j], word) >> lane & 1) << j;
        if (variables >> lane & 1)
            keys[first + __popc(variables & below)] = key;
    }
}

// out[i] = the value of the input or of the full-width variable `sources[i]`, out of Montgomery form.
KERNEL(256, 4, r1cs_full_scalars, (Witness witness, const uint32_t *sources, uint32_t count, Number *out)) {
    uint32_t index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= count)
        return;
    uint32_t source = sources[index];
    Fr value = source & INPUT ? witness.inputs[source & ~INPUT] : witness.full[source];
    Number number;
    value.canonical(number.v);
    out[index] = number;
}

// Of values at first .. first + len, each of `units` times 16 bytes, those that are listed: to[i] = value indices[i].
// Others of `to` stay as they are.
KERNEL(256, 4, r1cs_pick,
       (uint4 * to, const uint4 *from, const uint32_t *indices, uint32_t count, uint32_t units, uint32_t first,
        uint32_t len)) {
    uint32_t index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= count * units)
        return;
    uint32_t place = index / units, value = indices[place] - first;
    if (value < len)
        to[index] = from[(uint64_t)value * units + index % units];
}
