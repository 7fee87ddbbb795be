// loads = cached: what a product reads once is loaded as anything else, and stays in L2 from product to product.
#define __ldcs __ldg
