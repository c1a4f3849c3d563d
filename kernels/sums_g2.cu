// Sums of points of G2: twice the registers.
#include "sums.cuh"

SUM_KERNELS(g2, Fp2, Fp2Called, 256, 128)
