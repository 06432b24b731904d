//! Folders of OneDrive. With "Files On-Demand" they show files that are only in the cloud, and fetch each when it is
//! opened.

/// Why a data set should not be there.
pub(super) const CAUSE: &str = "OneDrive may keep files in the cloud only (Files On-Demand): each image is then downloaded when it is first \
    read, and reading fails if OneDrive does not run or has no connection; from WSL each file also goes through a Windows file server";
/// How all files of a folder are downloaded, as the start of a sentence.
pub(super) const KEEP: &str = "in File Explorer, right-click the folder of the data set, choose \"Always keep on this device\" and wait \
    until all files have a green mark";

/// Whether a path leads through a folder of OneDrive: `OneDrive`, or `OneDrive - Contoso` of a company.
pub(super) fn holds(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part == "OneDrive" || part.starts_with("OneDrive - "))
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn folders_of_onedrive_are_known_by_their_names() {
        assert!(holds("/mnt/c/Users/mara/OneDrive/birds/data.yaml"));
        assert!(holds(r"C:\Users\mara\OneDrive - Contoso\birds"));
        assert!(!holds("/home/mara/OneDriveBackup/birds"));
    }
}
