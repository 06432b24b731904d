//! Compiles an inner loop twice, for any x86-64 processor and for those with AVX2, and chooses at run time. The
//! loops are plain Rust in integers, or in floats whose result is exact, so both give the same bytes.

/// Defines a function that runs with AVX2 where the processor has it, and the same one that never does.
macro_rules! with_avx2 {
    ($(#[$doc:meta])* $vis:vis fn $name:ident / $plain:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        #[doc = concat!("[`", stringify!($name), "`] without AVX2.")]
        #[inline(always)]
        $vis fn $plain($($arg: $type),*) $body

        $(#[$doc])*
        $vis fn $name($($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) {
                    $plain($($arg),*);
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    #[expect(unsafe_code, reason = "the compiler cannot know the processor")]
                    // SAFETY: the processor has AVX2, and the function is safe otherwise.
                    unsafe {
                        avx2($($arg),*);
                    }
                    return;
                }
            }
            $plain($($arg),*);
        }
    };
}

pub(super) use with_avx2;
