//! Disk and data set.

mod dangling;
mod data_set;
mod dead_mount;
mod ephemeral;
mod exported_names;
mod failing;
mod filesystem;
mod health;
mod images;
mod inodes;
mod label_encoding;
mod label_folder;
mod label_lines;
mod label_names;
mod labels;
mod lustre;
mod make_room;
mod new_folders;
mod other_yaml;
mod own_folders;
mod quota;
mod remote;
mod room;
mod root_squash;
mod slow;
mod space;
mod temporary;
mod ticket;
mod unfinished;
mod unlock;
mod unmounted;
mod unreadable;
mod weights;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &space::CHECK,
    &temporary::CHECK,
    &dead_mount::CHECK,
    &data_set::CHECK,
    &labels::CHECK,
    &images::CHECK,
    &failing::CHECK,
    &filesystem::CHECK,
    &slow::CHECK,
    &ephemeral::CHECK,
    &weights::CHECK,
    &ticket::CHECK,
    &own_folders::CHECK,
    &unfinished::CHECK,
];
