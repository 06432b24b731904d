//! What a user can do on this host: the commands and words of a remedy, decided by the distribution, by
//! what surrounds the system, and by how its driver was installed. A check says what is wrong and asks
//! this module how it is repaired here, so that no check can name another distribution's package manager
//! or advise restarting a machine that is not the user's.

pub(crate) mod address_space;
mod appliance;
pub(crate) mod arch;
mod as_packaged;
pub(crate) mod boot_space;
mod broken_tree;
pub(crate) mod build_module;
mod build_tools;
pub(crate) mod device_group;
mod failed_build;
pub(crate) mod fit;
pub(crate) mod generation;
pub(crate) mod gpus_of_job;
pub(crate) mod grid;
pub(crate) mod image;
pub(crate) mod initramfs;
pub(crate) mod install_driver;
pub(crate) mod keep_awake;
pub(crate) mod kernel_headers;
pub(crate) mod kernel_option;
pub(crate) mod lxc;
pub(crate) mod more_memory;
mod newer_branch;
mod nixos;
mod nvidia_repository;
mod of_debian;
pub(crate) mod of_two_repositories;
pub(crate) mod of_two_sources;
pub(crate) mod old_card;
pub(crate) mod power_cycle;
mod precompiled;
pub(crate) mod removed_kernel;
pub(crate) mod rented;
pub(crate) mod replace_driver;
pub(crate) mod restart;
pub(crate) mod service;
mod shell_language;
mod shell_limits;
pub(crate) mod signing_key;
mod start;
pub(crate) mod start_container;
pub(crate) mod upgrade;
pub(crate) mod user_shell;
pub(crate) mod variables_file;
