//! Compiles an inner loop twice, for any x86-64 processor and for those with AVX2, and chooses at run time. The
//! loops are plain Rust in integers, or in floats whose result is exact, so both give the same bytes. The crate
//! multiversion makes the choice, so that no code here is unsafe. It asks the processor once for each loop.

/// Defines a function that runs with AVX2 where the processor has it, and the same one that never does.
macro_rules! with_avx2 {
    ($(#[$doc:meta])* $vis:vis fn $name:ident / $plain:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        #[doc = concat!("[`", stringify!($name), "`] without AVX2.")]
        #[inline(always)]
        $vis fn $plain($($arg: $type),*) $body

        $(#[$doc])*
        #[multiversion::multiversion(targets("x86_64+avx2"), dispatcher = "direct")]
        $vis fn $name($($arg: $type),*) {
            $plain($($arg),*);
        }
    };
}

pub(super) use with_avx2;
