use spmv_runtime::spmv_kernel;

macro_rules! vector_kernels {
    ($($name:ident: $threads:literal $value:ty;)+) => {
        $(
            #[spmv_kernel(algorithm = csr_vector, threads_per_vector = $threads, value = $value)]
            pub struct $name;
        )+
    };
}

vector_kernels! {
    Four: 4 f32;
    Five: 5 i16;
}

fn main() {}
