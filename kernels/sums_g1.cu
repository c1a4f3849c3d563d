// Sums of points of G1.
#include "sums.cuh"

SUM_KERNELS(g1, Fp, FpCalled, 384, 256)
