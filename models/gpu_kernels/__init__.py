"""Kernels for GPUs in Triton, with the arithmetic of the plain implementations in fewer and larger launches.

A file has the kernels of one noun, the operations of torch that launch them, and what models call. An operation is seen
as one by everything that watches torch: it runs on fake tensors, is counted as one launch, and is recorded in a CUDA
graph. It allocates no more than its results, reads nothing back, and its block sizes follow from shapes alone.

Imported only where a network runs these kernels, because triton comes with builds of torch for CUDA only.
"""
