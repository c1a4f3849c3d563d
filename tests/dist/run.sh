#!/usr/bin/env bash
# Links C and C++ programs with the archive of `make dist`, in the ways that nodes link such libraries, and runs them.
#
#     tests/dist/run.sh DIST [PARAMS_DIR]
#
# DIST is the PREFIX of `make dist`. With the directory of insecure 2 KiB parameters of seed 1, the examples also
# prove. Needs gcc, g++, binutils, xz, and cargo for the neighbour archive.
set -euo pipefail
dist=$(realpath "$1")
params=${2:+$(realpath "$2")}
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case=$root/tests/fixtures/StackedDrg2KiBV1_1-000
sector=963860
miner=3454089
c1=$work/c1.json
xz -dc "$case/c1.json.xz" > "$c1"
# Nothing of the caller's environment may change what the programs see.
unset BELLMAN_NO_GPU CUPOREP_THREADS CUPOREP_MEMORY CUPOREP_GPU_WORKERS
export FIL_PROOFS_PARAMETER_CACHE=/nonexistent/parameters

strict=(-O1 -Wall -Wextra -Wpedantic -Werror -I "$dist/include")
libs=(-lm -ldl -lpthread)
archive=$dist/lib/libcuporep.a

fail() {
    echo "tests/dist: $*" >&2
    exit 1
}

# Runs a program that prints nothing of its own: every byte that appears is a fault.
silent() {
    local name=$1
    shift
    "$@" > "$work/out" 2> "$work/err" || fail "$name: exit $?: $(cat "$work/out" "$work/err")"
    [ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "$name printed: $(cat "$work/out" "$work/err")"
    echo "ok: $name"
}

# --- symbols ---------------------------------------------------------------------------------------------------------
others=$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | grep -vxE 'prove_porep|cuporep_[a-z0-9_]+' || true)
[ -z "$others" ] || fail "the archive also shows: $others"
# Every function of the header is there, and nothing else.
nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort > "$work/shown"
gcc -E -I "$dist/include" -x c "$dist/include/cuporep.h" | grep -oE '\b(prove_porep|cuporep_[a-z0-9_]+)\(' | tr -d '(' |
    sort -u > "$work/declared"
diff "$work/declared" "$work/shown" || fail "header and archive differ"
echo "ok: only prove_porep and cuporep_* are shown"

# --- the header alone ------------------------------------------------------------------------------------------------
gcc -std=c99 "${strict[@]}" -fsyntax-only -x c "$dist/include/cuporep.h"
g++ -std=c++11 "${strict[@]}" -fsyntax-only -x c++ "$dist/include/cuporep.h"
echo "ok: the header is C99 and C++11"

# --- one program at a time, in all ways to link ------------------------------------------------------------------------
gcc -std=c99 "${strict[@]}" -fPIE -c "$root/tests/c/abi.c" -o "$work/abi.o"
g++ -std=c++11 "${strict[@]}" -fPIE -c "$root/tests/c/exceptions.cpp" -o "$work/exceptions.o"
number=0
link_and_run() {
    local name=$1 compiler=$2 object=$3
    shift 3
    number=$((number + 1))
    "$compiler" "$object" "$@" "${libs[@]}" -o "$work/program$number"
    silent "$name" "$work/program$number" "$c1" $sector $miner
    rm "$work/program$number"
}
link_and_run "C, PIE" gcc "$work/abi.o" -pie "$archive"
link_and_run "C, not PIE, sections collected" gcc "$work/abi.o" -no-pie "$archive" -Wl,--gc-sections
link_and_run "C++ exceptions, PIE" g++ "$work/exceptions.o" -pie "$archive"
link_and_run "C++ exceptions, not PIE, sections collected" g++ "$work/exceptions.o" -no-pie "$archive" -Wl,--gc-sections
link_and_run "C, unresolved symbols ignored" gcc "$work/abi.o" "$archive" -Wl,-unresolved-symbols=ignore-all

# --- beside a library with the same names ------------------------------------------------------------------------------
gcc -std=c99 -O1 -c "$root/tests/c/impostor.c" -o "$work/impostor.o"
ar rcs "$work/libimpostor.a" "$work/impostor.o"
impostor=(-Wl,--undefined=impostor_is_linked "$work/libimpostor.a")
link_and_run "impostor first" gcc "$work/abi.o" "${impostor[@]}" "$archive" -Wl,--allow-multiple-definition
link_and_run "impostor last" gcc "$work/abi.o" "$archive" "${impostor[@]}" -Wl,--allow-multiple-definition
link_and_run "impostor, no definition twice" gcc "$work/abi.o" "${impostor[@]}" "$archive"

# --- beside another Rust archive ---------------------------------------------------------------------------------------
neighbour=$(cd "$root/tests/dist/neighbour" && cargo rustc --locked --quiet --release --message-format json-render-diagnostics |
    sed -n 's/.*"filenames":\["\([^"]*libneighbour\.a\)"\].*/\1/p' | tail -n 1)
gcc -std=c99 "${strict[@]}" -fPIE -c "$root/tests/c/beside.c" -o "$work/beside.o"
for way in -pie -no-pie "-pie -Wl,--gc-sections" "-no-pie -Wl,--gc-sections" \
    "-pie -Wl,-unresolved-symbols=ignore-all" "-pie -Wl,--allow-multiple-definition"; do
    # shellcheck disable=SC2086 # several flags in one text
    link_and_run "Rust neighbour last, $way" gcc "$work/beside.o" $way "$archive" "$neighbour"
    # shellcheck disable=SC2086
    link_and_run "Rust neighbour first, $way" gcc "$work/beside.o" $way "$neighbour" "$archive"
done

# --- memory errors and leaks -------------------------------------------------------------------------------------------
gcc -std=c99 "${strict[@]}" -g -fsanitize=address -fno-omit-frame-pointer "$root/tests/c/abi.c" "$archive" "${libs[@]}" \
    -o "$work/abi-asan"
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
silent "C under AddressSanitizer and LeakSanitizer" "$work/abi-asan" "$c1" $sector $miner
gcc -std=c99 "${strict[@]}" -g -fsanitize=address "$root/examples/c/prove.c" "$archive" "${libs[@]}" -o "$work/prove-asan"

# --- the examples --------------------------------------------------------------------------------------------------------
export PKG_CONFIG_PATH=$dist/lib/pkgconfig
flags=(-I "$dist/include" -L "$dist/lib" -lcuporep "${libs[@]}")
if command -v pkg-config > /dev/null; then
    read -ra flags <<< "$(pkg-config --cflags --libs --static cuporep)"
fi
gcc -std=c99 -Wall -Wextra -Werror "$root/examples/c/prove.c" "${flags[@]}" -o "$work/prove-c"
g++ -std=c++11 -Wall -Wextra -Werror "$root/examples/cpp/prove.cpp" "${flags[@]}" -o "$work/prove-cpp"
code=0
"$work/prove-c" "$c1" $sector $miner /nonexistent/parameters > "$work/out" 2> "$work/err" || code=$?
[ $code = 2 ] && grep -q '/nonexistent/parameters' "$work/err" || fail "C example without parameters: $code $(cat "$work/err")"
code=0
"$work/prove-asan" "$c1" $sector 1 /nonexistent/parameters > "$work/out" 2> "$work/err" || code=$?
[ $code = 1 ] && grep -q '^error 107' "$work/err" && ! grep -q Sanitizer "$work/err" || fail "C example, wrong miner: $code $(cat "$work/err")"
code=0
"$work/prove-cpp" "$c1" $sector $miner > "$work/out" 2> "$work/err" || code=$?
[ $code = 2 ] && grep -q '^error 200' "$work/err" || fail "C++ example without parameters: $code $(cat "$work/err")"
echo "ok: the examples report errors"

if [ -n "$params" ]; then
    "$work/prove-c" "$c1" $sector $miner "$params" > "$work/hex" 2> "$work/err" || fail "C example: $(cat "$work/err")"
    [ "$(tr -d '\n' < "$work/hex" | wc -c)" = 384 ] || fail "C example printed $(cat "$work/hex")"
    grep -q 'made on' "$work/err" || fail "C example: $(cat "$work/err")"
    echo "ok: the C example proves and verifies"
    "$work/prove-asan" "$c1" $sector $miner "$params" > "$work/hex" 2> "$work/err" || fail "C example, sanitized: $(cat "$work/err")"
    ! grep -q Sanitizer "$work/err" || fail "C example: $(cat "$work/err")"
    echo "ok: the C example proves under AddressSanitizer and LeakSanitizer"
    FIL_PROOFS_PARAMETER_CACHE=$params "$work/prove-cpp" "$c1" $sector $miner > "$work/hex" 2> "$work/err" ||
        fail "C++ example: $(cat "$work/err")"
    [ ! -s "$work/err" ] || fail "C++ example: $(cat "$work/err")"
    [ "$(tr -d '\n' < "$work/hex" | wc -c)" = 384 ] || fail "C++ example printed $(cat "$work/hex")"
    echo "ok: the C++ example proves"
fi
