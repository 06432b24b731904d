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
mod in_container;
mod inodes;
mod labels;
mod lustre;
mod make_room;
mod new_folders;
mod no_locks;
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
mod unread_formats;
mod unreadable;
mod validation_split;
mod weights;
mod yaml_encoding;

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
    &no_locks::CHECK,
    &unfinished::CHECK,
];
