// Sums of points of G2: twice the registers, so that products in place would leave too few threads.
#include "sums.cuh"

SUM_KERNELS(g2, Fp2Called, Fp2Called, 384, 128)
