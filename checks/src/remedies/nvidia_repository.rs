//! Where NVIDIA keeps its driver's packages for distributions.

/// NVIDIA's repositories for distributions that package no driver, or an old one.
pub(super) const REPOSITORIES: &str = "https://developer.download.nvidia.com/compute/cuda/repos";
