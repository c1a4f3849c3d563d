/* A library with names of blst and of the CUDA runtime that do wrong things: nothing of ours may call them. */

#include <stdlib.h>

#define WRONG(name)   \
    int name(void) {  \
        abort();      \
    }

WRONG(blst_fr_add) WRONG(blst_fr_mul) WRONG(blst_fr_sqr) WRONG(blst_fr_from_uint64) WRONG(blst_fp_mul) WRONG(blst_fp_add)
WRONG(blst_p1_add) WRONG(blst_p1_add_or_double) WRONG(blst_p1_uncompress) WRONG(blst_p2_uncompress) WRONG(blst_p1_compress)
WRONG(blst_p1_in_g1) WRONG(blst_p1_affine_in_g1) WRONG(blst_p2_affine_in_g2) WRONG(blst_scalar_fr_check)
WRONG(blst_scalar_from_fr) WRONG(blst_miller_loop) WRONG(blst_final_exp) WRONG(blst_fp12_mul) WRONG(blst_sha256)
WRONG(blst_fr_inverse) WRONG(blst_fr_eucl_inverse) WRONG(blst_fr_sub) WRONG(blst_fr_cneg) WRONG(blst_scalar_from_lendian)
WRONG(blst_fr_from_scalar) WRONG(blst_p1_mult) WRONG(blst_p2_mult) WRONG(blst_p1s_mult_pippenger)
WRONG(add_mod_256) WRONG(mul_mont_sparse_256) WRONG(mul_mont_384) WRONG(rust_eh_personality)
WRONG(cudaMalloc) WRONG(cudaFree) WRONG(cudaMemcpy) WRONG(cudaMemcpyAsync) WRONG(cudaLaunchKernel) WRONG(cudaGetDevice)
WRONG(cudaSetDevice) WRONG(cudaGetDeviceCount) WRONG(cudaStreamCreate) WRONG(cudaGetErrorString) WRONG(cuInit)
WRONG(__cudaRegisterFatBinary) WRONG(__cudaRegisterFunction)

/* Pulls this object into the program. */
int impostor_is_linked(void) {
    return 1;
}
